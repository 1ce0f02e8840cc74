"""Mechanisms and attacks to play with, for everybody: each picture is computed by the library."""

from discreet.service.pages.areas.gallery.pages import PAGES as PAGES

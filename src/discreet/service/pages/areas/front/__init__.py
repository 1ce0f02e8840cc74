"""Where everybody begins: what this is, and signing in and out."""

from discreet.service.pages.areas.front.pages import PAGES as PAGES

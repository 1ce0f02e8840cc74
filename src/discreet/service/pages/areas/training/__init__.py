"""Training that can be watched: the same points learnt with and without privacy, side by side."""

from discreet.service.pages.areas.training.pages import PAGES as PAGES

"""The budget explorer: everybody may spend the budget of a hundred made-up people."""

from discreet.service.pages.areas.explorer.pages import PAGES as PAGES

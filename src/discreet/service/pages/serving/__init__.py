"""From a browser's request to a page: the session, the guards, and what every answer says."""

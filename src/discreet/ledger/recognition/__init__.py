"""Know data again under another name: sketches of content, and how alike two of them are."""

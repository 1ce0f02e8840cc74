"""The gateway over HTTP: routes, what goes in and comes out, problems, and the document of it."""

"""From a view to HTML: templates, figures, and the files that pages are made with."""

"""From settings to processes that serve: workers, what they log, and the demo."""

"""The pages that the gateway serves to browsers: a view over the same desk, never a way around."""

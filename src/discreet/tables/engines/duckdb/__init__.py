"""DuckDB, in this process: files, frames and databases of one machine."""

"""Collecting reports: declared and paid for in a ledger first, stored without a trace of who."""

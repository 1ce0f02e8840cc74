"""Everything an auditor runs: replay, exports, witnesses."""

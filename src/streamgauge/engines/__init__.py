"""Systems under test: each one folder or file and one entry point."""

"""Reads: the feed and pages of rows, read jobs, and scans."""

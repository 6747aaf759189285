"""The forms in which commands print: tables for people, and forms for programs."""

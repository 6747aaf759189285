"""Schemas: types and their text form, fields with ids, lossless conversions, reading rows under another schema."""

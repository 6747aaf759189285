"""Decoding raw input: one task unpacks and cuts it, one task per split checks its rows and stages them."""

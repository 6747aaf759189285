"""Celery tasks: ids in, ids out."""

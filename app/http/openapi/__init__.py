"""The OpenAPI document: operations and components, generated from typed handlers."""

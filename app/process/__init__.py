"""What runs: the wing that knows all features and composes the API process from them.

    application            the ASGI application: routes, authentication, error handling
    services               the dependencies of handlers, composed from the features
    routes, providers      the lists of all handlers, and of what they get from a request
    openapi                the OpenAPI document, generated from the handlers
    composition, tables    which rooms participate in transactions of core; the tables of all rooms
    readiness, doctor      checks of a process, and of a whole deployment
    backup                 copies of all rows of the database

`app.main` starts it. The worker is composed in `workers.wiring`, from the same features.
"""

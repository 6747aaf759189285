"""What runs: the wing that knows all features and composes the API process from them.

    features               the list of what features add to every process, and to transactions of the core rooms
    api                    the list of what features add to the API: routes, and what handlers get
    application            the ASGI application: authentication, error handling, and the routes
    openapi                the OpenAPI document, generated from the handlers
    tables                 the tables of all rooms
    readiness              whether this process can take requests
    doctor                 checks of a deployment and of its setup
    backup                 copies of all rows of the database

`app.main` starts it. The worker is composed in `workers.wiring`, from the same features.
"""

"""What a feature adds to the service, as values. Each process is composed of a list of them.

    feature        `Feature`: what every process composes: participants in transactions, tasks, stagers, followers,
                   reconcilers, loops
    api            `FeatureApi`: what only the API composes: routes, providers, dependencies, resources, quotas
    stagers        the interface of what makes the rows of a kind of write
    reconcilers    the interface of what carries out a maintenance policy

A feature states each of the two values once, and only the fields that it has something for:

>>> from app.core.feature.feature import Feature
>>> followed = Feature(name="views", followers=lambda worker: {"view": "what follows the inputs"})
>>> sorted(followed.followers(None)), followed.tasks(None)
(['view'], {})

A name that two features state stops the start:

>>> from app.core.feature.feature import merged
>>> merged({"view": 1}, {"webhook": 2}, {"view": 3})
Traceback (most recent call last):
    ...
ValueError: names that two features state: view
"""

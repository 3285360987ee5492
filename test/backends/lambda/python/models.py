"""What the models of a generated client do not know."""

import attrs


def strays(value, path=""):
    """Fields below a model that it has no name for."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from strays(each, f"{path}[{index}]")
        return
    if not attrs.has(type(value)):
        return
    unknown = getattr(value, "additional_properties", {})
    for name, each in unknown.items():
        # The table of types has a model for each of its names; errors of version 1.10.0 have a request id, which this client is older than.
        if attrs.has(type(each)):
            yield from strays(each, f"{path}.{name}")
        elif not (name == "request_id" and type(value).__name__.startswith("ApiError")):
            yield f"{path}.{name} is unknown to {type(value).__name__}"
    for field in attrs.fields(type(value)):
        if field.name != "additional_properties":
            yield from strays(getattr(value, field.name), f"{path}.{field.name}")

import ml_collections


def base():
    config = ml_collections.ConfigDict()
    config.batch = 96
    config.save_every = 250
    config.steps = None
    config.width = None
    config.data = ""
    return config.lock()


PRESETS = {
    "digits": ml_collections.ConfigDict({"steps": 4000}),
    "letters": ml_collections.ConfigDict({"steps": 9000}),
}


def for_data(config, name):
    config = ml_collections.ConfigDict(config.to_dict())
    config.data = name
    config.update(PRESETS[name])
    return config

import ml_collections


def get_config():
    config = ml_collections.ConfigDict()
    config.lr = 1e-3
    config.batch_size = 512
    config.num_steps = 20_000
    config.save_every = 1000
    return config

class HParams:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def parse(self, text):
        for pair in text.split(","):
            name, value = pair.split("=")
            setattr(self, name, type(getattr(self, name))(value))


def create_hparams(hparams_string=None):
    hparams = HParams(
        epochs=500,
        iters_per_checkpoint=1000,
        seed=1234,
        ignore_layers=["embedding.weight"],
        training_files="filelists/lj_train.txt",
        n_symbols=148,
        symbols_embedding_dim=512,
        n_mel_channels=80,
        learning_rate=1e-3,
        weight_decay=1e-6,
        grad_clip_thresh=1.0,
        batch_size=44,
    )
    if hparams_string:
        hparams.parse(hparams_string)
    return hparams

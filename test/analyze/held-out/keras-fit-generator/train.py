from keras.callbacks import ModelCheckpoint
from keras.layers import Conv2D, Input
from keras.models import Model
from keras.optimizers import Adam
from keras.preprocessing.image import ImageDataGenerator


def segmenter(size):
    inputs = Input(size)
    hidden = Conv2D(16, 3, activation="relu", padding="same")(inputs)
    outputs = Conv2D(1, 1, activation="sigmoid")(hidden)
    model = Model(inputs=inputs, outputs=outputs)
    model.compile(optimizer=Adam(lr=1e-4), loss="binary_crossentropy")
    return model


def pairs(batch_size):
    flow = ImageDataGenerator(rescale=1 / 255).flow_from_directory("scans", batch_size=batch_size)
    for images, masks in flow:
        yield images, masks


model = segmenter((256, 256, 1))
saver = ModelCheckpoint("weights/unet-{epoch:02d}.hdf5", save_weights_only=True)
model.fit_generator(pairs(4), steps_per_epoch=300, epochs=20, callbacks=[saver])

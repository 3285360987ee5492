import cPickle as pkl
import sys
import time

import numpy
import theano
import theano.tensor as tensor


def get_minibatches_idx(n, size):
    idx = numpy.arange(n, dtype="int32")
    numpy.random.shuffle(idx)
    return [idx[i:i + size] for i in xrange(0, n, size)]


def train_lstm(dim_proj=128, max_epochs=100, lrate=0.0001, saveto="lstm_model.npz"):
    W = theano.shared(numpy.random.randn(dim_proj, 2).astype("float32"), name="W")
    x = tensor.matrix("x")
    y = tensor.ivector("y")
    cost = -tensor.mean(tensor.log(tensor.nnet.softmax(tensor.dot(x, W)))[tensor.arange(y.shape[0]), y])
    f = theano.function([x, y], cost, updates=[(W, W - lrate * tensor.grad(cost, W))])
    data, labels = pkl.load(open("imdb.pkl"))
    for eidx in xrange(max_epochs):
        for train_index in get_minibatches_idx(len(data), 16):
            c = f(data[train_index], labels[train_index])
        print "Epoch %d cost %f" % (eidx, c)
        numpy.savez(saveto, W=W.get_value())
    print >>sys.stderr, "done at", time.time()


if __name__ == "__main__":
    train_lstm()

import cPickle
import theano
import theano.tensor as T

print "loading"
data = cPickle.load(open("mnist.pkl", "rb"))
for epoch in xrange(10):
    try:
        cost = train(data)
    except ValueError, e:
        print >>log, e
    print "epoch %d cost %f" % (epoch, cost)

/** Models whose parameters a program makes itself, as lists and dictionaries of JAX's arrays. */
import { isCalled, type Facts } from '../facts'
import type { CallEvent } from '../values'
import { arrayMade } from './jax-arrays'
import { product } from './layers'
import { repeatsOf } from './networks'
import { keptResults, type BuiltModel } from './results'

const GRADIENTS = new Set(['jax.grad', 'jax.value_and_grad'])
/** Functions that make parameters, by the names that people give them; other arrays are data. */
const MAKING = /init|param|weight|create|build|make_(?:model|net)/i

/** `undefined` if the program takes no gradients, makes no parameters in a function of such a name, or if the size of one is not known. */
export function jaxParameters({ events, loops }: Facts): BuiltModel | undefined {
  const called = events.filter(isCalled)
  if (!called.some(({ name }) => GRADIENTS.has(name))) return undefined
  const isParameter = (event: CallEvent): boolean =>
    isArray(event) &&
    event.within.some((name) => MAKING.test(name)) &&
    !event.loops.some((loop) => loops.has(loop))
  const made = called.filter(isParameter)
  const [first] = made
  if (first === undefined) return undefined
  const arrays = made.map((event) => ({
    shape: arrayMade(event) ?? [NaN],
    repeats: repeatsOf(event.loops, loops),
  }))
  const sizeOf = (of: typeof arrays): number =>
    of.reduce((sum, { shape, repeats }) => sum + product(shape) * repeats, 0)
  const parameters = sizeOf(arrays)
  if (!Number.isFinite(parameters)) return undefined
  // A bias is as long as the result of its layer. Of pictures and sequences, a layer has as many results as there are places.
  const biases = arrays.filter(({ shape }) => shape.length === 1)
  const isFlat = biases.length > 0 && arrays.every(({ shape }) => shape.length <= 2)
  const results = isFlat ? sizeOf(biases) : NaN
  return { parameters, kept: keptResults({ results, largest: 0 }), first }
}

const isArray = ({ name }: CallEvent): boolean =>
  /^jax\.(?:random\.(?:normal|uniform|truncated_normal|orthogonal)|numpy\.(?:zeros|ones))$/.test(name)

/** Arrays that a program makes with JAX and NumPy. */
import { argument } from '../facts'
import { numberOf, type CallEvent, type Value } from '../values'

/** Makers whose shape is the argument at a place. */
const MAKERS: readonly (readonly [name: RegExp, at: number])[] = [
  [/^(?:jax\.numpy|numpy)\.(?:zeros|ones|empty|full)$/, 0],
  [/^jax\.random\.(?:normal|uniform|truncated_normal|bernoulli|randint)$/, 1],
  [/^numpy\.random\.(?:randint|normal|uniform)$/, 2],
]

/** The shape of `jnp.zeros((1, 8))` or `random.normal(key, (3, 4))`; `undefined` for other calls and sizes that are not known. */
export function arrayMade(call: CallEvent): number[] | undefined {
  if (/^numpy\.random\.(?:rand|randn)$/.test(call.name)) return known(call.positional)
  const maker = MAKERS.find(([name]) => name.test(call.name))
  if (maker === undefined) return undefined
  const given = call.named.get('size') ?? argument(call, 'shape', maker[1])
  return given?.kind === 'list' ? known(given.items) : given && known([given])
}

/** The same of a value. */
export const arrayShape = (value: Value | undefined): number[] | undefined =>
  value?.kind === 'made' ? arrayMade(value.call) : undefined

function known(values: readonly Value[]): number[] | undefined {
  const sizes = values.map(numberOf)
  return sizes.every((size) => size !== undefined) ? sizes : undefined
}

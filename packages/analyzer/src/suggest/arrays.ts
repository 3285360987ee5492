/** Recognises data of `fit` that is certainly an array. Keras shuffles arrays in each epoch; generators and pipelines keep a position. */
import type { Facts } from '../facts'
import { childAt, parts, type SyntaxNode } from '../syntax'
import { alternatives, type CallEvent, type Value } from '../values'
import { isUnset, namedNode, positionalNodes } from './calls'
import { valuesOf } from './origins'
import { refuseCall } from './refusal'

export function checkArrays(facts: Facts, fit: CallEvent): void {
  const tested = fit.named.get('validation_data')
  const inputs = [
    { value: fit.positional[0] ?? fit.named.get('x'), node: positionalNodes(fit)[0] ?? namedNode(fit, 'x') },
    ...(isUnset(tested) ? [] : [{ value: tested, node: namedNode(fit, 'validation_data') }]),
  ]
  for (const { value, node } of inputs) {
    const isKnown = value !== undefined && itemsOf(value).every(isArray)
    if (isKnown || (node !== undefined && isArrayNode(facts, { node, root: fit.file.root }))) continue
    refuseCall(
      fit,
      'is given data that is not surely an array; the place in a generator or pipeline cannot be saved',
    )
  }
}

/** Functions whose results are arrays, or that read them. */
const ARRAYS = [
  'numpy.',
  'pandas.',
  'sklearn.',
  'scipy.',
  'h5py.',
  'jax.numpy.',
  'keras.datasets.',
  'keras.utils.to_categorical',
  'keras.preprocessing.sequence.pad_sequences',
  'keras.utils.pad_sequences',
  'tensorflow.keras.datasets.',
  'cv2.',
]

const PIPELINES = [
  'tensorflow.data',
  'tensorflow_datasets',
  'torch.',
  'Sequence',
  'PyDataset',
  '_from_directory',
  'grain.',
]

const itemsOf = (value: Value): readonly Value[] =>
  alternatives(value).flatMap((each) => (each.kind === 'list' ? each.items : [each]))

const isOfArrays = ({ name }: CallEvent): boolean => ARRAYS.some((prefix) => name.startsWith(prefix))
const isOfPipelines = ({ name }: CallEvent): boolean => PIPELINES.some((part) => name.includes(part))

function isArray(value: Value): boolean {
  const calls = value.kind === 'made' ? [value.call] : value.origins.map(({ call }) => call)
  return calls.some(isOfArrays) && !calls.some(isOfPipelines)
}

interface Place {
  node: SyntaxNode
  root: SyntaxNode
}

/** Maximum number of names to follow; longer chains give no more information. */
const DEPTH_MAX = 6

/** An expression of arrays: parts of one, arithmetic with one, or a name that has only such values in the file. */
function isArrayNode(facts: Facts, { node, root }: Place, depth = 0): boolean {
  const isOne = (each: SyntaxNode | undefined): boolean =>
    each !== undefined && depth < DEPTH_MAX && isArrayNode(facts, { node: each, root }, depth + 1)
  switch (node.type) {
    case 'identifier': {
      const values = valuesOf(root, node.text)
      return values.length > 0 && values.every(isOne)
    }
    case 'subscript':
      return isOne(childAt(node, 'value'))
    case 'parenthesized_expression':
    case 'tuple':
    case 'list':
      return parts(node).length > 0 && parts(node).every(isOne)
    case 'binary_operator':
      return isOne(childAt(node, 'left')) || isOne(childAt(node, 'right'))
    case 'call': {
      const event = facts.events.find((each) => each.node === node)
      if (event !== undefined && isOfPipelines(event)) return false
      const called = childAt(node, 'function')!
      return (
        (event !== undefined && isOfArrays(event)) ||
        (called.type === 'attribute' && isOne(childAt(called, 'object')))
      )
    }
    default:
      return false
  }
}

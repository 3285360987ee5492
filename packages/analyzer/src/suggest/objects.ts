/** The objects of libraries that hold the state of a run, and the names by which the loop can reach them. */
import { externalBase } from '../members'
import { alternatives, constantOf, type CallEvent, type Value } from '../values'

export type Role =
  | 'module'
  | 'optimizer'
  | 'scheduler'
  | 'scaler'
  | 'loader'
  | 'estimator'
  | 'torch-random'
  | 'numpy-random'
  | 'python-random'

/** Objects whose `state_dict` contains their whole state. */
export const WITH_STATE: ReadonlySet<Role> = new Set([
  'module',
  'optimizer',
  'scheduler',
  'scaler',
  'estimator',
])

/** An object with a name. */
export interface NamedObject {
  /** `model`, `self.optimizer` */
  path: string
  role: Role
  /** Whether it may be `None`. */
  isOptional: boolean
  /** Every object that it may be. */
  identities: readonly unknown[]
  value: Value
}

/** Methods that return their own object. */
const PASSED_ON = new Set([
  'to',
  'cuda',
  'cpu',
  'half',
  'float',
  'double',
  'train',
  'eval',
  'requires_grad_',
  'manual_seed',
  'apply',
])

/** The object behind `model.to(device)`. */
export function objectOf(value: Value): Value {
  return value.kind === 'made' && PASSED_ON.has(value.call.method) && value.call.receiver !== undefined
    ? objectOf(value.call.receiver)
    : value
}

/** Returns a key that is equal for two values that are the same object. */
export function identityOf(value: Value): unknown {
  const object = objectOf(value)
  if (object.kind === 'instance') return object.attributes
  return object.kind === 'made' ? object.call.node : object
}

const ROLES: readonly (readonly [prefix: string, role: Role])[] = [
  ['torch.optim.swa_utils.AveragedModel', 'module'],
  ['torch.optim.swa_utils.SWALR', 'scheduler'],
  ['torch.optim.swa_utils.', 'module'],
  ['torch.optim.lr_scheduler.', 'scheduler'],
  ['torch.optim.', 'optimizer'],
  ['torch.compile', 'module'],
  ['torchvision.models.', 'module'],
  ['timm.create_model', 'module'],
  ['torch.utils.data.DataLoader', 'loader'],
  ['torch.Generator', 'torch-random'],
  ['numpy.random.default_rng', 'numpy-random'],
  ['numpy.random.RandomState', 'numpy-random'],
  ['numpy.random.Generator', 'numpy-random'],
  ['random.Random', 'python-random'],
]

/** Classes of scikit-learn that learn batch by batch and keep all that they know in their attributes. */
const ESTIMATORS = new Set([
  'SGDClassifier',
  'SGDRegressor',
  'Perceptron',
  'PassiveAggressiveClassifier',
  'PassiveAggressiveRegressor',
  'MultinomialNB',
  'BernoulliNB',
  'GaussianNB',
  'ComplementNB',
  'CategoricalNB',
  'MiniBatchKMeans',
  'IncrementalPCA',
  'MLPClassifier',
  'MLPRegressor',
])

/** Parts of `torch.nn` that are not modules. */
const NO_MODULES = ['torch.nn.functional', 'torch.nn.init', 'torch.nn.utils', 'torch.nn.Parameter']

export function roleOfCall({ name, method }: CallEvent): Role | undefined {
  if (name.includes('()')) return undefined
  if (name.startsWith('torch.nn.') && !NO_MODULES.some((part) => name.startsWith(part))) return 'module'
  if (method === 'GradScaler') return 'scaler'
  if (name.startsWith('transformers.') && method.startsWith('get_') && method.includes('schedule'))
    return 'scheduler'
  if (name.startsWith('sklearn.') && ESTIMATORS.has(method)) return 'estimator'
  const known = ROLES.find(([prefix]) => name.startsWith(prefix))
  return known?.[1] === 'optimizer' && method.charAt(0) === method.charAt(0).toLowerCase()
    ? undefined
    : known?.[1]
}

export function roleOfObject(value: Value): Role | undefined {
  const object = objectOf(value)
  if (object.kind === 'instance') {
    const base = externalBase(object.definition)
    return base?.startsWith('torch.') === true && base.endsWith('Module') ? 'module' : undefined
  }
  if (object.kind !== 'made') return undefined
  const { name, method, receiver } = object.call
  if (method === 'from_pretrained' && name.startsWith('transformers.'))
    return name.includes('Model') ? 'module' : undefined
  return receiver === undefined || name.startsWith('torch.') ? roleOfCall(object.call) : undefined
}

/** Losses have no state that changes. */
const isLoss = (value: Value): boolean => {
  const object = objectOf(value)
  return (
    object.kind === 'made' && object.call.name.startsWith('torch.nn.') && object.call.name.endsWith('Loss')
  )
}

/** A value as an object with a role, if that is all that it can be. */
function heldAt(path: string, value: Value): NamedObject | undefined {
  const all = alternatives(value)
  const objects = all.filter((each) => constantOf(each) !== null)
  const [role, ...others] = new Set(objects.map(roleOfObject))
  if (role === undefined || others.length > 0 || objects.every(isLoss)) return undefined
  return {
    path,
    role,
    value,
    isOptional: objects.length < all.length,
    identities: objects.map(identityOf),
  }
}

/** Maximum depth to which objects of the project are searched. */
const DEPTH_MAX = 2

/** Objects that can be reached by names of the loop, each once: by a name of the loop's own function, and the shortest of these. */
export function heldObjects(names: ReadonlyMap<string, Value>, locals: ReadonlySet<string>): NamedObject[] {
  const found: NamedObject[] = []
  const visit = (path: string, value: Value, depth: number): void => {
    const held = heldAt(path, value)
    if (held !== undefined) found.push(held)
    else if (value.kind === 'instance' && depth < DEPTH_MAX)
      for (const [name, attribute] of value.attributes)
        if (!name.startsWith('<')) visit(`${path}.${name}`, attribute, depth + 1)
  }
  for (const [name, value] of names) visit(name, value, 0)
  const seen = new Set<unknown>()
  const rank = ({ path }: NamedObject): number =>
    path.split('.').length + (locals.has(path.split('.')[0]!) ? 0 : 2 * DEPTH_MAX)
  const shortest = [...found].sort((one, other) => rank(one) - rank(other))
  const unique = shortest.filter(({ identities }) => {
    const isNew = identities.some((each) => !seen.has(each))
    for (const each of identities) seen.add(each)
    return isNew
  })
  const inner = new Set(unique.flatMap(({ value }) => alternatives(value).flatMap(insideOf)))
  const outer = unique.filter(
    ({ role, identities }) => role !== 'module' || !identities.every((each) => inner.has(each)),
  )
  return found.filter((each) => outer.includes(each))
}

/** The modules that a module holds. */
export function insideOf(value: Value): unknown[] {
  const object = objectOf(value)
  if (roleOfObject(object) !== 'module') return []
  const children =
    object.kind === 'instance'
      ? [...object.attributes.values()]
      : object.kind === 'made' && !object.call.name.endsWith('AveragedModel')
        ? object.call.positional
        : []
  return children
    .flatMap((child) => (child.kind === 'list' ? child.items : alternatives(child)))
    .filter((child) => roleOfObject(child) === 'module')
    .flatMap((child) => [identityOf(child), ...insideOf(child)])
}

/** `value.name` */
import { isContainer, membersOf } from './containers'
import { parentOf } from './files'
import type { Frame, Interpreter } from './interpreter'
import { isSettings } from './options/dataclasses'
import type { SyntaxNode } from './syntax'
import {
  alternatives,
  constant,
  dict,
  either,
  extern,
  list,
  seenUnder,
  unknown,
  withTaint,
  type ClassDefinition,
  type Value,
} from './values'

export function memberOfValue(
  run: Interpreter,
  { value, name }: { value: Value; name: string },
  frame: Frame,
): Value {
  switch (value.kind) {
    case 'module':
      return value.scope.names.get(name) ?? run.submodule(value.scope, name, frame) ?? unknown()
    case 'extern':
      if (value.name === 'sys' && name === 'argv')
        return list([run.entry, ...run.args].map((word) => constant(word)))
      if (name === 'sep' && ['os', 'os.path'].includes(value.name)) return constant('/')
      return flagValue(run, value.name, name) ?? extern(`${value.name}.${name}`, value.receiver)
    case 'made':
      return (
        value.attributes.get(name) ??
        argumentOfSettings(value, name) ??
        withTaint(extern(`${value.name}.${name}`, value), value)
      )
    case 'class':
      return memberOfClass(value.definition, name) ?? extern(`${value.definition.name}.${name}`, value)
    case 'instance':
      return memberOfInstance(run, { value, name }, frame)
    case 'dict':
      return entryUnder(value.entries.get(name), frame) ?? extern(`dict.${name}`, value)
    case 'list':
      return extern(`list.${name}`, value)
    case 'either': {
      const members = alternatives(value).map((each) => memberOfValue(run, { value: each, name }, frame))
      return members.reduce(either)
    }
    case 'constant':
      if (name === 'parent' && typeof value.value === 'string') return parentOf(value) ?? unknown(value)
      return withTaint(extern(`${typeof value.value === 'string' ? 'str' : '?'}.${name}`, value), value)
    case 'function':
      return extern(`${value.definition.name}.${name}`, value)
    case 'unknown':
      return withTaint(extern(`?.${name}`, value), value)
  }
}

/** An attribute of a library's settings, which are the arguments that it was made with. */
const argumentOfSettings = ({ call }: Extract<Value, { kind: 'made' }>, name: string): Value | undefined =>
  isSettings(call.name) ? call.named.get(name) : undefined

const entryUnder = (entry: Value | undefined, { guards }: Frame): Value | undefined =>
  entry === undefined ? undefined : seenUnder(entry, guards)

/** `FLAGS.name` of absl. */
function flagValue(run: Interpreter, owner: string, name: string): Value | undefined {
  if (!owner.endsWith('flags.FLAGS')) return undefined
  const option = run.options.find(({ key }) => key === name)
  return option === undefined
    ? undefined
    : { ...(option.given ?? option.default), options: new Set([option]) }
}

export function memberOfClass(definition: ClassDefinition, name: string): Value | undefined {
  const own = definition.members.get(name)
  if (own !== undefined) return own
  for (const base of definition.bases) {
    const found = base.kind === 'class' ? memberOfClass(base.definition, name) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** The class outside the project from which a class is derived. */
export function externalBase(definition: ClassDefinition): string | undefined {
  for (const base of definition.bases) {
    if (base.kind === 'extern') return base.name
    const found = base.kind === 'class' ? externalBase(base.definition) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

type Instance = Extract<Value, { kind: 'instance' }>

function memberOfInstance(
  run: Interpreter,
  { value, name }: { value: Instance; name: string },
  frame: Frame,
): Value {
  const attribute = value.attributes.get(name)
  if (attribute !== undefined) return seenUnder(attribute, frame.guards)
  if (name === '__dict__') return dict(value.attributes)
  const member = memberOfClass(value.definition, name)
  if (member?.kind === 'function') {
    const bound: Value = { ...member, self: value }
    const isProperty = member.definition.decorators.some(({ text }) => text.includes('property'))
    return isProperty ? run.callFunction(bound, { positional: [], named: new Map(), frame }) : bound
  }
  if (member !== undefined) return member
  const base = externalBase(value.definition)
  return extern(base === undefined ? `${value.definition.name}().${name}` : `${base}().${name}`, value)
}

/** `value[key]` */
export function entryOf(value: Value, key: Value): Value {
  const name = key.kind === 'constant' ? String(key.value) : undefined
  if (value.kind === 'either') return value.values.map((each) => entryOf(each, key)).reduce(either)
  if (value.kind === 'dict') {
    const found = name === undefined ? undefined : value.entries.get(name)
    if (found !== undefined || name === undefined || value.makes === undefined) return found ?? unknown(value)
    const made = value.makes()
    value.entries.set(name, made)
    return made
  }
  if (value.kind === 'list' && typeof name === 'string') return value.items.at(Number(name)) ?? unknown(value)
  if (isContainer(value)) {
    const members = membersOf(value)
    const at = name === undefined ? undefined : members.at(Number(name))
    return at ?? (members.length === 0 ? unknown(value) : members.reduce(either))
  }
  if (value.kind === 'made') {
    const found = name === undefined ? undefined : value.attributes.get(name)
    if (found !== undefined) return found
    // `os.environ['LOCAL_RANK']`, `torch.load(path)['model']`, `load(path)[library.MODEL_KEY]`
    const entry = name ?? (key.kind === 'extern' ? key.name : undefined)
    return unknown({
      options: value.options,
      origins: value.origins.map((origin) => ({ ...origin, key: entry ?? origin.key })),
    })
  }
  // `torchvision.models.__dict__[name]`
  if (value.kind === 'extern' && value.name.endsWith('.__dict__') && name !== undefined)
    return extern(`${value.name.slice(0, -'.__dict__'.length)}.${name}`)
  if (value.kind === 'extern') return unknown(value, `${value.name}[${name ?? ''}]`)
  return unknown({
    options: value.options,
    origins: value.origins.map((origin) => ({ ...origin, key: origin.key ?? name })),
  })
}

/** `sizes[:-1]` of a list; `undefined` for other subscripts. */
export function sliceOf(value: Value, key: SyntaxNode): Value | undefined {
  const ends = key.type === 'slice' && value.kind === 'list' ? key.text.split(':') : []
  const numbers = ends.map((end) => (end.trim() === '' ? undefined : Number(end)))
  if (ends.length !== 2 || numbers.some(Number.isNaN) || value.kind !== 'list') return undefined
  return list(value.items.slice(...numbers))
}

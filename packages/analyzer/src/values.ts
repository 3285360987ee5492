/** Facts about a value of a Python program without running it. */
import type { Guard, Loop } from './flow'
import type { SourceFile, SyntaxNode } from './syntax'

/** An option of the command line or of the configuration. */
export interface Option {
  /** Name as it is given: `--resume`, or a key such as `trainer.max_epochs`. */
  name: string
  /** The name that the program reads. */
  key: string
  default: Value
  /** The value of the command line, if it names the option. */
  given: Value | undefined
  isRequired: boolean
  /** Whether its name alone turns it on. */
  isFlag: boolean
  /** Whether its value may be left out, which turns it on too. */
  standsAlone: boolean
  /** The type of its values, as the library names it. */
  type: string | undefined
  file: string
  line: number
}

/** The result of a call, or one entry of it. */
interface Origin {
  call: CallEvent
  key: string | undefined
}

/** Dependencies of a value. */
export interface Taint {
  options: ReadonlySet<Option>
  origins: readonly Origin[]
}

export type Constant = string | number | boolean | null

export type Value = Taint &
  (
    | {
        kind: 'unknown'
        text?: string
        every?: Every
        bound?: Value
        /** For a collection: one of its items. */
        each?: Value
        /** For arithmetic: an operand with the shape of the result. */
        like?: Value
        /** For a condition: what it is made of. */
        of?: readonly Value[]
        /** For `x[rows]`: the value with these and other rows. */
        partOf?: Value
      }
    | { kind: 'constant'; value: Constant }
    | { kind: 'list'; items: readonly Value[] }
    /** `makes` gives the entry of a key that is not there, in a `defaultdict`; `isNamespace`: it is an object with these attributes. */
    | { kind: 'dict'; entries: Map<string, Value>; makes?: () => Value; isNamespace?: true }
    /** A module, class or function outside the project; with a receiver, a method of it. */
    | { kind: 'extern'; name: string; receiver: Value | undefined }
    /** The result of calling one. */
    | { kind: 'made'; name: string; call: CallEvent; attributes: Map<string, Value> }
    | {
        kind: 'function'
        definition: FunctionDefinition
        self: Value | undefined
        wrappers: readonly CallEvent[]
      }
    | { kind: 'class'; definition: ClassDefinition }
    | { kind: 'instance'; definition: ClassDefinition; attributes: Map<string, Value> }
    | { kind: 'module'; scope: Scope; name: string }
    /** One of several, which of them is known at run time only. */
    | { kind: 'either'; values: readonly Value[]; under?: { guard: Guard; value: Value } }
  )

/** `x % n == 0`: something happens at every n-th x. */
export interface Every {
  count: Value
  unitText: string
}

export interface FunctionDefinition {
  name: string
  file: SourceFile
  node: SyntaxNode
  scope: Scope
  owner: ClassDefinition | undefined
  decorators: readonly SyntaxNode[]
}

export interface ClassDefinition {
  name: string
  file: SourceFile
  node: SyntaxNode
  bases: readonly Value[]
  members: Map<string, Value>
  /** Annotated members, in order: the fields of a dataclass. */
  fields: { name: string; value: Value | undefined; node: SyntaxNode }[]
  decorators: readonly string[]
}

/** Names of a module or function. */
export class Scope {
  names = new Map<string, Value>()
  /** External modules of `from x import *`. */
  readonly stars: string[] = []

  constructor(
    readonly file: SourceFile,
    readonly parent: Scope | undefined,
    /** Names that `global` and `nonlocal` lead elsewhere. */
    readonly elsewhere: Set<string> = new Set(),
  ) {}

  /** Returns a scope with the names of this one for the statements of another file, which `exec` runs here. */
  in(file: SourceFile): Scope {
    const scope = new Scope(file, this.parent, this.elsewhere)
    scope.names = this.names
    return scope
  }

  find(name: string): Value | undefined {
    return this.names.get(name) ?? this.parent?.find(name)
  }

  put(name: string, value: Value): void {
    if (this.elsewhere.has(name) && this.parent !== undefined) this.parent.put(name, value)
    else this.names.set(name, value)
  }

  get module(): Scope {
    return this.parent?.module ?? this
  }
}

/** A call that the program would make. */
export interface CallEvent {
  /** The dotted name, with aliases of imports resolved: `torch.optim.AdamW().step`. */
  name: string
  /** The last part of the name. */
  method: string
  receiver: Value | undefined
  receiverText: string
  positional: readonly Value[]
  named: ReadonlyMap<string, Value>
  /** Arguments as they are written. */
  argumentTexts: readonly string[]
  node: SyntaxNode
  file: SourceFile
  loops: readonly Loop[]
  guards: readonly Guard[]
  /** Names of the functions of the project around it, outermost first. */
  within: readonly string[]
}

const NOTHING: Taint = { options: new Set(), origins: [] }

/** A longer text is no name, path or setting; programs that double a text again and again would exhaust the memory. */
const TEXT_MAX = 100_000

export const unknown = (taint: Taint = NOTHING, text?: string): Value => ({
  kind: 'unknown',
  options: taint.options,
  origins: taint.origins,
  text: text !== undefined && text.length > TEXT_MAX ? undefined : text,
})

export const constant = (value: Constant, taint: Taint = NOTHING): Value =>
  typeof value === 'string' && value.length > TEXT_MAX
    ? unknown(taint)
    : { kind: 'constant', value, options: taint.options, origins: taint.origins }

export const extern = (name: string, receiver?: Value): Value => ({
  ...NOTHING,
  kind: 'extern',
  name,
  receiver,
})

/** A longer list is data. */
const ITEMS_MAX = 10_000

export const list = (items: readonly Value[]): Value =>
  items.length > ITEMS_MAX ? unknown() : { ...taintOf(...items), kind: 'list', items }

export const dict = (entries: Map<string, Value>): Value => ({ ...NOTHING, kind: 'dict', entries })

/** `argparse.Namespace`, `types.SimpleNamespace` */
export const namespace = (attributes: Map<string, Value>): Value => ({
  ...NOTHING,
  kind: 'dict',
  entries: attributes,
  isNamespace: true,
})

/** Limit on origins; more reveal nothing new. */
const ORIGINS_MAX = 24

export function taintOf(...values: readonly (Taint | undefined)[]): Taint {
  const tainted = values.filter(
    (value) => value !== undefined && (value.options.size > 0 || value.origins.length > 0),
  )
  if (tainted.length === 0) return NOTHING
  if (tainted.length === 1) return { options: tainted[0]!.options, origins: tainted[0]!.origins }
  const options = new Set(tainted.flatMap((value) => [...value!.options]))
  const origins = new Map(
    tainted.flatMap((value) =>
      value!.origins.map((origin) => [
        `${origin.call.node.start}${origin.call.file.path}${origin.key}`,
        origin,
      ]),
    ),
  )
  return { options, origins: [...origins.values()].slice(0, ORIGINS_MAX) }
}

export function withTaint(value: Value, taint: Taint): Value {
  if (taint.options.size === 0 && taint.origins.length === 0) return value
  return { ...value, ...taintOf(value, taint) }
}

/** Returns the value if it is one constant. */
export const constantOf = (value: Value | undefined): Constant | undefined =>
  value?.kind === 'constant' ? value.value : undefined

export const textOf = (value: Value | undefined): string | undefined =>
  value?.kind === 'constant' && typeof value.value === 'string' ? value.value : undefined

/** An entry of a dictionary. */
export const setting = (config: Value | undefined, key: string): Value | undefined =>
  config?.kind === 'dict' ? config.entries.get(key) : undefined

export const numberOf = (value: Value | undefined): number | undefined =>
  value?.kind === 'constant' && typeof value.value === 'number' ? value.value : undefined

/** Whether Python treats the value as true; `undefined` if only a run shows it. */
export function truthOf(value: Value): boolean | undefined {
  switch (value.kind) {
    case 'constant':
      return typeof value.value === 'number' ? value.value !== 0 : Boolean(value.value)
    case 'list':
      return value.items.length > 0 ? true : value.origins.length > 0 ? undefined : false
    case 'dict':
      return value.entries.size > 0 ? true : undefined
    case 'instance':
    case 'class':
    case 'function':
    case 'module':
      return true
    case 'either': {
      const truths = new Set(value.values.map(truthOf))
      return truths.size === 1 ? [...truths][0] : undefined
    }
    case 'made':
    case 'extern':
    case 'unknown':
      return undefined
  }
}

/** A value as code under the given conditions sees it: in the branch that assigned it, it has no alternative. */
export function seenUnder(value: Value, guards: readonly Guard[]): Value {
  if (value.kind !== 'either' || value.under === undefined) return value
  return guards.includes(value.under.guard) ? value.under.value : value
}

/** Returns one of two values, such as after an `if` with an unknown outcome. */
export function either(first: Value, second: Value): Value {
  if (first === second || isSame(first, second)) return withTaint(first, second)
  const values = [...alternatives(first), ...alternatives(second)].slice(0, 4)
  return { ...taintOf(first, second), kind: 'either', values }
}

export function alternatives(value: Value): readonly Value[] {
  return value.kind === 'either' ? value.values : [value]
}

function isSame(first: Value, second: Value): boolean {
  if (first.kind === 'constant' && second.kind === 'constant') return first.value === second.value
  if (first.kind === 'made' && second.kind === 'made') return first.call === second.call
  if (first.kind === 'instance' && second.kind === 'instance') return first.attributes === second.attributes
  return first.kind === 'unknown' && second.kind === 'unknown' && first.text === second.text
}

/** `field(default=1)`, `field(default_factory=list)` */
export function fieldDefault(value: Value): Value {
  if (value.kind !== 'made' || !['field', 'Field', 'HfArg'].includes(value.call.method)) return value
  const factory = value.call.named.get('default_factory')
  return (
    value.call.named.get('default') ??
    (factory === undefined ? (value.call.positional[0] ?? unknown()) : unknown())
  )
}

/** The attribute of an instance that holds the call of its library's constructor. */
export const CONSTRUCTION = '<construction>'

/** The call that made an object of a library, or of a class derived from one of a library. */
export function constructionOf(value: Value | undefined): CallEvent | undefined {
  const made = value?.kind === 'instance' ? value.attributes.get(CONSTRUCTION) : value
  return made?.kind === 'made' ? made.call : undefined
}

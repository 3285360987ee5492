/** The template of deploy/aws, evaluated for given parameters as CloudFormation does; moto judges that in moto.test.ts. */
/* eslint-disable @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-return -- the properties of any resource */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMap, isScalar, isSeq, parseDocument, type Node, type YAMLMap } from 'yaml'

export interface Statement {
  Effect: string
  Action: string | string[]
  Resource?: string | string[]
  Principal?: unknown
  Condition?: Record<string, Record<string, string | string[]>>
}

export interface Resource {
  Type: string
  DeletionPolicy?: string
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the properties of any resource
  Properties: any
}

export interface Template {
  resources: Record<string, Resource>
  outputs: Record<string, unknown>
  /** The policies of a role by name, whether they are its own or attached. */
  policiesOf(role: string): Record<string, Statement[]>
}

export interface Environment {
  account?: string
  partition?: string
  region?: string
  parameters: Record<string, string>
}

const TEXT = readFileSync(join(__dirname, '../../../../deploy/aws/crucible.template.yaml'), 'utf8')
const NO_VALUE = Symbol('AWS::NoValue')

export function evaluateTemplate({ parameters, ...rest }: Environment): Template {
  const { account = '111122223333', partition = 'aws', region = 'us-east-1' } = rest
  const root = parseDocument(TEXT, { logLevel: 'silent' }).contents as YAMLMap<Node, Node>
  const section = (name: string): Map<string, Node> =>
    new Map((root.get(name) as YAMLMap<Node, Node>).items.map(({ key, value }) => [String(key), value!]))
  const [declared, conditions, resources] = ['Parameters', 'Conditions', 'Resources'].map(section)

  const parameter = (name: string): string | string[] => {
    const about = declared!.get(name)!.toJSON() as { Type: string; Default?: string }
    const value = parameters[name] ?? about.Default
    if (value === undefined) throw new Error(`parameter ${name} has no value`)
    return about.Type === 'CommaDelimitedList' ? value.split(',') : value
  }
  const condition = (name: string): boolean => valueOf(conditions!.get(name)!) as boolean
  const propertiesOf = (id: string): Record<string, string> =>
    valueOf((resources!.get(id) as YAMLMap<Node, Node>).get('Properties') as Node) as Record<string, string>
  const pseudo: Record<string, unknown> = {
    'AWS::AccountId': account,
    'AWS::Partition': partition,
    'AWS::Region': region,
    'AWS::NoValue': NO_VALUE,
  }
  const reference = (name: string): unknown => {
    if (name in pseudo) return pseudo[name]
    if (declared!.has(name)) return parameter(name)
    const { RoleName, InstanceProfileName, BucketName } = propertiesOf(name)
    return RoleName ?? InstanceProfileName ?? BucketName ?? name
  }
  const attribute = (text: string): string => {
    const [id = '', name] = text.split('.')
    const { RoleName, InstanceProfileName, Path = '/' } = propertiesOf(id)
    if (name !== 'Arn') return `${id}.${name}`
    const path = RoleName === undefined ? `instance-profile/${InstanceProfileName}` : `role${Path}${RoleName}`
    return `arn:${partition}:iam::${account}:${path}`
  }

  const functions: Record<string, (argument: never, node: Node) => unknown> = {
    '!Ref': (name: string) => reference(name),
    '!GetAtt': (text: string) => attribute(text),
    '!Sub': (text: string) => text.replace(/\$\{([\w:]+)\}/g, (_, name: string) => String(reference(name))),
    '!Equals': ([a, b]: unknown[]) => a === b,
    '!Not': ([a]: boolean[]) => !a,
    '!And': (all: (boolean | { Condition: string })[]) =>
      all.every((each) => (typeof each === 'boolean' ? each : condition(each.Condition))),
    '!If': ([name, yes, no]: [string, unknown, unknown]) => (condition(name) ? yes : no),
    '!Select': ([at, list]: [number, string[]]) => list[at],
    '!Join': ([separator, list]: [string, string[]]) => list.join(separator),
  }
  function valueOf(node: Node): unknown {
    const plain = plainOf(node)
    const work = functions[node.tag ?? '']
    return work === undefined ? plain : work(plain as never, node)
  }
  function plainOf(node: Node): unknown {
    if (isScalar(node)) return node.value
    if (isSeq<Node>(node)) {
      const items = node.items.map(valueOf)
      // A branch of `!If` may be no value, which the list around it then lacks.
      return node.tag === '!If' ? items : items.filter((each) => each !== NO_VALUE)
    }
    if (!isMap<Node, Node>(node)) throw new Error('unknown node')
    const entries = node.items.map(({ key, value }) => [String(key), valueOf(value!)] as const)
    return Object.fromEntries(entries.filter(([, value]) => value !== NO_VALUE))
  }
  /** The items of a section whose condition holds. */
  const wanted = (name: string): [string, never][] =>
    [...section(name)].flatMap(([id, node]) => {
      const on = (node as YAMLMap).get('Condition') as string | undefined
      return on === undefined || condition(on) ? [[id, valueOf(node) as never]] : []
    })

  const made = Object.fromEntries(wanted('Resources')) as Record<string, Resource>
  return {
    resources: made,
    outputs: Object.fromEntries(wanted('Outputs').map(([id, { Value }]) => [id, Value])),
    policiesOf: (role) => {
      const all = Object.values(made)
      const own = all.find(({ Properties }) => Properties.RoleName === role)?.Properties.Policies ?? []
      const attached = all.filter(
        ({ Type, Properties }) => Type === 'AWS::IAM::Policy' && Properties.Roles.includes(role),
      )
      const policies = [...own, ...attached.map(({ Properties }) => Properties)]
      return Object.fromEntries(
        policies.map(({ PolicyName, PolicyDocument }) => [PolicyName, PolicyDocument.Statement]),
      )
    },
  }
}

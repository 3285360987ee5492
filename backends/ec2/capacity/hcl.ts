/** Terraform's language, formatted as its own formatter does. */

/** A literal expression, such as `var.prefix`. */
export class Expression {
  constructor(readonly text: string) {}
}

export type Value =
  string | number | boolean | Expression | readonly Value[] | { readonly [name: string]: Value }

/** A block: `resource "aws_vpc" "vpc" { ... }`. */
export interface Block {
  /** `resource`, or the name of a block within another. */
  kind: string
  labels?: readonly string[]
  /** Comment above it. */
  comment?: string
  attributes?: Readonly<Record<string, Value>>
  blocks?: readonly Block[]
}

export function writeBlocks(blocks: readonly Block[]): string {
  return `${blocks.map((block) => writeBlock(block, '')).join('\n\n')}\n`
}

function writeBlock(
  { kind, labels = [], comment, attributes = {}, blocks = [] }: Block,
  indent: string,
): string {
  const inside = `${indent}  `
  const head = [kind, ...labels.map((label) => `"${label}"`)].join(' ')
  const lines = writeAttributes(Object.entries(attributes), inside)
  const inner = blocks.map((block) => writeBlock(block, inside))
  const body = [...(lines === '' ? [] : [lines]), ...inner].join('\n\n')
  const told =
    comment === undefined
      ? ''
      : `${comment
          .split('\n')
          .map((line) => `${indent}# ${line}`)
          .join('\n')}\n`
  return body === '' ? `${told}${indent}${head} {}` : `${told}${indent}${head} {\n${body}\n${indent}}`
}

/** Adjacent one-line entries align their equal signs. */
function writeAttributes(entries: readonly [string, Value][], indent: string): string {
  const written = entries.map(([name, value]) => [name, write(value, indent)] as const)
  return written
    .map(([name, text], at) => {
      const width = text.includes('\n') ? name.length : widthAround(written, at)
      return `${indent}${name.padEnd(width)} = ${text}`
    })
    .join('\n')
}

function widthAround(written: readonly (readonly [string, string])[], at: number): number {
  const isShort = (index: number): boolean =>
    written[index] !== undefined && !written[index][1].includes('\n')
  let [from, to] = [at, at]
  while (isShort(from - 1)) from--
  while (isShort(to + 1)) to++
  // A multi-line entry ends a group of aligned neighbours, and its name counts.
  return Math.max(...written.slice(from, to + 1).map(([name]) => name.length))
}

function write(value: Value, indent: string): string {
  if (value instanceof Expression) return value.text.replaceAll('\n', `\n${indent}`)
  if (typeof value === 'string') return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
  if (typeof value !== 'object') return String(value)
  const inside = `${indent}  `
  if (Array.isArray(value)) {
    const items = (value as readonly Value[]).map((item) => write(item, inside))
    const line = `[${items.join(', ')}]`
    if (!line.includes('\n') && line.length + indent.length < LINE_MAX) return line
    return `[\n${items.map((item) => `${inside}${item},`).join('\n')}\n${indent}]`
  }
  const entries = Object.entries(value as Record<string, Value>)
  if (entries.length === 0) return '{}'
  const named = entries.map(([name, each]): [string, Value] => [keyOf(name), each])
  return `{\n${writeAttributes(named, inside)}\n${indent}}`
}

const LINE_MAX = 100
const keyOf = (name: string): string => (/^[A-Za-z_][\w-]*$/.test(name) ? name : `"${name}"`)

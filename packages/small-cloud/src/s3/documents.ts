/** The documents that clients send to the object store, read strictly and written anew. */
import { checkKey } from './names'
import { StoreProblem } from './problems'

interface Element {
  name: string
  text: string
  children: Element[]
}

const NESTED_MAX = 8
const OBJECTS_MAX = 1000
const PARTS_MAX = 10_000
const NAME = /^[A-Za-z][A-Za-z0-9]{0,63}$/
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
const ENTITY = /&(#\d{1,7}|#x[0-9a-fA-F]{1,6}|\w{1,8})?;?/g

/** Reads elements without attributes, other than namespaces, and without comments, sections and declarations of types. */
function readXml(text: string): Element {
  const top: Element = { name: '', text: '', children: [] }
  const open = [top]
  let at = text.startsWith('<?xml') ? after(text, '?>', 0) : 0
  while (at < text.length) {
    const begin = text.indexOf('<', at)
    open.at(-1)!.text += unescaped(text.slice(at, begin < 0 ? text.length : begin))
    if (begin < 0) break
    at = after(text, '>', begin)
    const tag = text.slice(begin + 1, at - 1)
    if (tag.startsWith('/')) {
      if (open.length < 2 || open.pop()!.name !== tag.slice(1).trimEnd()) throw wrongXml()
      continue
    }
    const isEmpty = tag.endsWith('/')
    const element = { name: nameOf(isEmpty ? tag.slice(0, -1) : tag), text: '', children: [] }
    open.at(-1)!.children.push(element)
    if (!isEmpty) open.push(element)
    if (open.length > NESTED_MAX) throw wrongXml()
  }
  const [root, ...others] = top.children
  if (open.length > 1 || root === undefined || others.length > 0) throw wrongXml()
  return root
}

function after(text: string, end: string, from: number): number {
  const at = text.indexOf(end, from)
  if (at < 0) throw wrongXml()
  return at + end.length
}

function nameOf(tag: string): string {
  const [name = '', ...attributes] = tag.split(/\s/)
  if (!NAME.test(name) || attributes.some((each) => each !== '' && !each.startsWith('xmlns')))
    throw wrongXml()
  return name
}

function unescaped(text: string): string {
  return text.replace(ENTITY, (whole, name: string | undefined) => {
    if (name === undefined || !whole.endsWith(';')) throw wrongXml()
    if (!name.startsWith('#')) return ENTITIES[name] ?? refuse()
    const code = name.startsWith('#x') ? parseInt(name.slice(2), 16) : Number(name.slice(1))
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : refuse()
  })
}

function escaped(text: string): string {
  return text.replace(/[<>&"'\r]/g, (c) => `&#${c.charCodeAt(0)};`)
}

function refuse(): never {
  throw wrongXml()
}

function wrongXml(): StoreProblem {
  return new StoreProblem(
    'MalformedXML',
    400,
    'The XML you provided was not well-formed or has unknown elements.',
  )
}

/** Returns the region that a new bucket is for. Throws `StoreProblem`. */
export function readCreateBucket(document: string): string {
  if (document.trim() === '') return 'us-east-1'
  const { name, children } = readXml(document)
  if (name !== 'CreateBucketConfiguration') throw wrongXml()
  const region = children.find((each) => each.name === 'LocationConstraint')?.text.trim() ?? ''
  if (region === '') return 'us-east-1'
  if (!/^[a-z]{2}[a-z0-9-]{2,30}$/.test(region))
    throw new StoreProblem(
      'InvalidLocationConstraint',
      400,
      'The specified location constraint is not valid.',
    )
  return region
}

export interface Deletion {
  keys: readonly string[]
  /** The document, written anew. */
  document: string
}

/** Returns the objects to delete. Throws `StoreProblem`. */
export function readDeletion(document: string): Deletion {
  const { name, children } = readXml(document)
  const keys: string[] = []
  let quiet = ''
  if (name !== 'Delete') throw wrongXml()
  for (const child of children) {
    if (child.name === 'Quiet' && /^(?:true|false)$/.test(child.text)) quiet = `<Quiet>${child.text}</Quiet>`
    else if (child.name === 'Object') keys.push(keyOf(child))
    else throw wrongXml()
  }
  if (keys.length === 0 || keys.length > OBJECTS_MAX) throw wrongXml()
  const objects = keys.map((key) => `<Object><Key>${escaped(key)}</Key></Object>`)
  return { keys, document: `<Delete>${objects.join('')}${quiet}</Delete>` }
}

function keyOf({ children }: Element): string {
  const [key, ...others] = children
  if (key?.name !== 'Key' || others.length > 0) throw wrongXml()
  checkKey(key.text)
  return key.text
}

const CHECKSUM = /^Checksum(?:CRC32|CRC32C|CRC64NVME|SHA1|SHA256)$/
const PART_FIELDS: Readonly<Record<string, RegExp>> = {
  PartNumber: /^\d{1,5}$/,
  ETag: /^"?[0-9a-fA-F]{32}(?:-\d{1,5})?"?$/,
}

/** Returns the list of an upload's parts, written anew. Throws `StoreProblem`. */
export function readParts(document: string): string {
  const { name, children } = readXml(document)
  if (name !== 'CompleteMultipartUpload' || children.length > PARTS_MAX) throw wrongXml()
  const parts = children.map((part) => {
    if (part.name !== 'Part') throw wrongXml()
    return `<Part>${part.children.map(partField).join('')}</Part>`
  })
  return `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
}

function partField({ name, text, children }: Element): string {
  const form = CHECKSUM.test(name) ? /^[0-9A-Za-z+/=]{1,100}$/ : PART_FIELDS[name]
  const value = text.trim()
  if (form === undefined || !form.test(value) || children.length > 0) throw wrongXml()
  return `<${name}>${escaped(value)}</${name}>`
}

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import { AttemptDocuments } from '../../activities/documents'
import { layout } from '../../storage/layout'
import { readRecords } from '../../storage/record'
import { MemoryStore } from '../backends/scripted/memory-store'
import { DOCUMENT_PARSERS, kindOfDocument } from '../support/document-parsers'

/** What `npm run freeze-release` kept of a release. */
export interface FrozenRelease {
  version: string
  folder: string
}

/** A file of a frozen release. */
export interface FrozenFile {
  /** Relative to the release. */
  path: string
  text: string
}

/** The release with the highest version under a folder; undefined before the first release. */
export function newestRelease(releases: string): FrozenRelease | undefined {
  if (!existsSync(releases)) return undefined
  const versions = readdirSync(releases).filter((name) => !name.startsWith('.'))
  const version = versions.sort(byVersion).at(-1)
  return version === undefined ? undefined : { version, folder: join(releases, version) }
}

/** 0.10.0 comes after 0.9.1, and after its own pre-releases. */
function byVersion(a: string, b: string): number {
  const [coreA = '', preA] = a.split(/-(.*)/s)
  const [coreB = '', preB] = b.split(/-(.*)/s)
  const order = coreA.localeCompare(coreB, 'en', { numeric: true })
  if (order !== 0) return order
  if (preA === undefined || preB === undefined) return Number(preA === undefined) - Number(preB === undefined)
  return preA.localeCompare(preB, 'en', { numeric: true })
}

/** The files of one of its folders. */
export function filesOf({ folder }: FrozenRelease, part: 'histories' | 'documents' | 'store'): FrozenFile[] {
  return readdirSync(join(folder, part), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({
      path: relative(folder, path).split(sep).join('/'),
      text: readFileSync(path, 'utf8'),
    }))
}

/** Documents that the product's readers refuse, or read as something else than what was written, each with the reason. */
export async function unreadable(release: FrozenRelease): Promise<string[]> {
  const stored = filesOf(release, 'store')
  const documents = [...filesOf(release, 'documents'), ...stored]
  return [...documents.flatMap(problemOf), ...(await unreadableInStore(stored))]
}

function problemOf({ path, text }: FrozenFile): string[] {
  const kind = path.includes('/record/') ? undefined : kindOfDocument(basename(path))
  if (kind === undefined) return []
  try {
    const lost = difference(DOCUMENT_PARSERS[kind]!(text), JSON.parse(text))
    return lost === undefined ? [] : [`${path}: ${lost} is read as something else`]
  } catch (error) {
    return [`${path}: ${error instanceof Error ? error.message : String(error)}`]
  }
}

/** Where something that was read differs from what was written; fields that are no longer read may be missing. */
function difference(read: unknown, written: unknown, path = 'the document'): string | undefined {
  if (typeof read !== 'object' || read === null) return Object.is(read, written) ? undefined : path
  if (typeof written !== 'object' || written === null) return path
  const other = written as Record<string, unknown>
  for (const [key, value] of Object.entries(read)) {
    const found = difference(value, other[key], `${path}.${key}`)
    if (found !== undefined) return found
  }
  return undefined
}

/** The documents that are read by their keys: records and machines. */
async function unreadableInStore(files: FrozenFile[]): Promise<string[]> {
  const store = new MemoryStore(() => 0)
  const keys = files.map(({ path }) => path.slice('store/'.length))
  for (const [index, key] of keys.entries()) await store.put(key, files[index]!.text)
  const problems: string[] = []
  for (const jobId of new Set(keys.map((key) => key.split('/')[1]!))) {
    const written = keys.filter((key) => key.startsWith(layout.records(jobId)))
    const read = await readRecords(store, jobId).catch((error: unknown) => String(error))
    if (typeof read === 'string') problems.push(read)
    else if (read.length !== written.length || read.some(({ kind, atMs }) => !kind || !(atMs > 0)))
      problems.push(`${layout.records(jobId)}: not every entry is read`)
  }
  for (const key of keys.filter((each) => each.endsWith('/machine.json'))) {
    const [, jobId, , attempt] = key.split('/')
    const at = { jobId: jobId!, attempt: Number(attempt) }
    const machine = await new AttemptDocuments(store, at, () => 0).readMachine()
    if (machine?.attemptId === undefined) problems.push(`${key}: the machine cannot be read`)
  }
  return problems
}

/** The user's code as one file: `jobs/<job>/bundle/<sha256>.tar.gz`. */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { CodedError } from '../core/errors'
import { undecodableName } from '../core/file-error'
import type { BundleRef } from '../core/job/job'
import { OWN_IGNORE } from './bundle-rules'
import { SECRET_BYTES_MAX, secretReason } from './bundle-secrets'
import { readTree, type FileEntry, type Tree } from './bundle-tree'
import { hasCode, storeErrorOf } from './file-errors'
import { layout } from './layout'
import { eachOf } from './parallel'
import type { ObjectStore } from './store'
import { ChangedFileError, writeTarball } from './tarball'

/** Limits of a bundle, before compression. */
export interface BundleLimits {
  totalBytes: number
  files: number
  fileBytes: number
}

/** Code, configuration and small data, which every machine can fetch in seconds. Larger data is an input. */
export const BUNDLE_LIMITS: BundleLimits = { totalBytes: 500e6, files: 20_000, fileBytes: 200e6 }

/** A tree beyond the file limit is scanned up to this multiple of the limit, to report where most of its files are. */
const LOOKED_AT_MAX = 10
/** Maximum number of files that a message names. */
const NAMED_MAX = 10

/** The folder cannot be packed as it is; the message names the files and the remedy. */
class BundleError extends CodedError<'bundle'> {
  constructor(message: string, options?: { cause?: unknown }) {
    super('bundle', message, options)
  }
}

/** A packed folder in a temporary file. */
export interface Bundle extends BundleRef {
  path: string
  contentSha256: string
  /** Sentences about files that are not sent, and about other differences from the folder. */
  warnings: string[]
  /** Removes the temporary file. */
  remove: () => Promise<void>
}

interface PackOptions {
  directory: string
  /** Paths that are left out regardless of the ignore files, such as the job's checkpoint directory. */
  leaveOut: readonly string[]
  limits: BundleLimits
}

/**
 * Reads what `packBundle` would pack. Throws a `BundleError` when there are files that look like secrets, links that lead out, or more than
 * the limits allow.
 */
export async function readPackable({ directory, leaveOut, limits }: PackOptions): Promise<Tree> {
  await checkFolder(directory)
  try {
    const tree = await readTree(directory, leaveOut, limits.files * LOOKED_AT_MAX)
    return await checkedTree(directory, tree, limits)
  } catch (error) {
    const { code, path = directory } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    const gone = disappeared(directory, error)
    const why = gone ?? `${storeErrorOf(error, `pack ${path}`).message} Or name it in ${OWN_IGNORE}.`
    throw new BundleError(why, { cause: error })
  }
}

/** Says that a file was removed since it was listed; undefined for another error. */
function disappeared(directory: string, error: unknown): string | undefined {
  const { path } = error as NodeJS.ErrnoException
  if (!hasCode(error, 'ENOENT', 'ENOTDIR') || path === undefined) return undefined
  return `The folder ${directory} cannot be packed: ${resolve(path)} disappeared meanwhile. Try again when no program writes to the folder, or name the file in ${OWN_IGNORE}.`
}

async function checkedTree(directory: string, tree: Tree, limits: BundleLimits): Promise<Tree> {
  const files = tree.entries.filter((entry) => entry.kind === 'file')
  checkLinks(directory, tree)
  checkLimits(directory, files, { limits, isWhole: tree.isWhole })
  await checkSecrets(directory, files)
  return tree
}

/**
 * Packs a folder, following its ignore files. The same content gives the same `contentSha256` at any time and for any user; `sha256` also
 * covers times and permissions. Throws like `readPackable`.
 */
export async function packBundle(options: PackOptions): Promise<Bundle> {
  const { directory } = options
  const { entries, warnings } = await readPackable(options)
  const files = entries.filter(({ kind }) => kind === 'file').length
  const folder = await mkdtemp(join(tmpdir(), 'crucible-bundle-'))
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  const path = join(folder, 'bundle.tar.gz')
  try {
    const written = await writeTarball(directory, entries, path)
    return { path, remove, files, warnings, ...written }
  } catch (error) {
    await remove()
    const why =
      error instanceof ChangedFileError
        ? `The folder ${directory} cannot be packed: ${error.message}. Try again when no program writes to it.`
        : (disappeared(directory, error) ?? storeErrorOf(error, `pack ${directory}`).message)
    throw new BundleError(why, { cause: error })
  }
}

/** Puts a bundle into the store of a job unless it is already there, and returns its reference. */
export async function storeBundle(store: ObjectStore, jobId: string, bundle: Bundle): Promise<BundleRef> {
  return storeBundleAt(store, layout.bundle(jobId, bundle.sha256), bundle)
}

/** Puts a bundle into the store under another key. */
export async function storeBundleAt(store: ObjectStore, key: string, bundle: Bundle): Promise<BundleRef> {
  const { sha256, contentSha256, sizeBytes, files } = bundle
  if ((await store.head(key))?.sizeBytes !== sizeBytes) await store.putFile(key, bundle.path)
  return { sha256, contentSha256, sizeBytes, files }
}

async function checkFolder(directory: string): Promise<void> {
  const stats = await stat(directory).catch((error: unknown) => {
    const misnamed = undecodableName(directory)
    throw new BundleError(misnamed ?? `There is no folder ${directory} to send along: correct workdir.`, {
      cause: error,
    })
  })
  if (!stats.isDirectory()) throw new BundleError(`${directory} is not a folder: correct workdir.`)
}

function checkLinks(directory: string, { outsideLinks }: Tree): void {
  if (outsideLinks.length === 0) return
  throw new BundleError(
    [
      `The folder ${directory} has links to files outside it, which the machine will not have:`,
      ...named(outsideLinks.map(({ path, target }) => `${path} -> ${target}`)),
      `Name them in ${OWN_IGNORE} if the program does not need them, or add their targets as inputs.`,
    ].join('\n'),
  )
}

function checkLimits(
  directory: string,
  files: readonly FileEntry[],
  { limits, isWhole }: { limits: BundleLimits; isWhole: boolean },
): void {
  const totalBytes = files.reduce((sum, file) => sum + (file.sameAs === undefined ? file.sizeBytes : 0), 0)
  const large = files.filter((file) => file.sizeBytes > limits.fileBytes)
  if (large.length === 0 && totalBytes <= limits.totalBytes && files.length <= limits.files) return
  const count = isWhole ? String(files.length) : `more than ${files.length - 1}`
  const isTooMany = files.length > limits.files
  const offenders = large.length > 0 ? large.map(asPart) : partsOf(files)
  offenders.sort((a, b) => (isTooMany && large.length === 0 ? b.files - a.files : b.bytes - a.bytes))
  throw new BundleError(
    [
      `The folder ${directory} is too large to send along: ${formatBytes(totalBytes)} in ${count} files. ` +
        `At most ${formatBytes(limits.totalBytes)} in ${limits.files} files fit, ${formatBytes(limits.fileBytes)} in one file. The largest:`,
      ...named(
        offenders.map(
          (part) =>
            `${part.path} ${formatBytes(part.bytes)} in ${part.files} ${part.files === 1 ? 'file' : 'files'}`,
        ),
      ),
      `Name what the program does not need in ${OWN_IGNORE}, and give large data as inputs.`,
    ].join('\n'),
  )
}

interface Part {
  path: string
  bytes: number
  files: number
}

function asPart(file: FileEntry): Part {
  return { path: file.path, bytes: file.sizeBytes, files: 1 }
}

/** Groups the files by the folder's direct entries. */
function partsOf(files: readonly FileEntry[]): Part[] {
  const parts = new Map<string, Part>()
  for (const file of files) {
    const [first = '', ...rest] = file.path.split('/')
    const path = rest.length === 0 ? first : `${first}/`
    const part = parts.get(path) ?? { path, bytes: 0, files: 0 }
    parts.set(path, { path, bytes: part.bytes + file.sizeBytes, files: part.files + 1 })
  }
  return [...parts.values()]
}

async function checkSecrets(directory: string, files: readonly FileEntry[]): Promise<void> {
  const reasons = await eachOf(files, async (file) => {
    if (file.isAskedFor) return []
    const text = file.sizeBytes > SECRET_BYTES_MAX ? '' : await readFile(join(directory, file.path), 'latin1')
    const reason = secretReason(file.path, text)
    return reason === undefined ? [] : [{ path: file.path, reason }]
  })
  const found = reasons.flat()
  if (found.length === 0) return
  throw new BundleError(
    [
      `The folder ${directory} has files that look like secrets, but files that are sent are not kept secret:`,
      ...named(found.map(({ path, reason }) => `${path} ${reason}`)),
      `Name them in ${OWN_IGNORE} and give their values as secrets. A line such as !${found[0]!.path} there marks one as harmless.`,
    ].join('\n'),
  )
}

function named(lines: readonly string[]): string[] {
  const rest = lines.length - NAMED_MAX
  return [
    ...lines.slice(0, NAMED_MAX).map((line) => `  ${line}`),
    ...(rest > 0 ? [`  and ${rest} more`] : []),
  ]
}

function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return `${Number((bytes / 1000 ** power).toFixed(1))} ${units[power]}`
}

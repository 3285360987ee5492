import type { Dirent } from 'node:fs'
import { lstat, readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { isAskedFor, isEnvironment, ruleOn, rulesOf, type Rules } from './bundle-rules'
import { compareKeys } from './keys'
import type { TarEntry } from './tarball'

export type FileEntry = Extract<TarEntry, { kind: 'file' }> & {
  /** A `!` line of a `.crucibleignore` names it. */
  isAskedFor: boolean
}

/** The content of a folder to pack. */
export interface Tree {
  /** Entries in path order. */
  entries: (FileEntry | Exclude<TarEntry, { kind: 'file' }>)[]
  /** Links that lead out of the folder, with their targets. */
  outsideLinks: { path: string; target: string }[]
  /** False when the walk was given up because of too many files. */
  isWhole: boolean
}

interface Walk {
  tree: Tree
  root: string
  leaveOut: ReadonlySet<string>
  filesMax: number
  files: number
}

/**
 * Lists the content of a folder to pack. Sockets, pipes and devices are left out.
 *
 * @param leaveOut paths that are left out regardless of the ignore files
 * @param filesMax number of files after which to give up
 */
export async function readTree(
  directory: string,
  leaveOut: readonly string[],
  filesMax: number,
): Promise<Tree> {
  const walk: Walk = {
    tree: { entries: [], outsideLinks: [], isWhole: true },
    root: await realpath(directory),
    leaveOut: new Set(leaveOut),
    filesMax,
    files: 0,
  }
  await visitFolder(walk, '', [])
  walk.tree.entries.sort((a, b) => compareKeys(a.path, b.path))
  return walk.tree
}

/** `folder` ends in a slash, or is empty for the root. */
async function visitFolder(walk: Walk, folder: string, outer: Rules): Promise<void> {
  const children = await readdir(join(walk.root, folder), { withFileTypes: true })
  const isLeftOut =
    folder !== '' && isEnvironment(children.map((child) => child.name)) && !isAskedFor(folder, outer)
  if (isLeftOut) return
  if (folder !== '') walk.tree.entries.push({ kind: 'folder', path: folder.slice(0, -1) })
  const rules = await rulesOf(walk.root, folder, outer)
  for (const child of children) {
    const path = `${folder}${child.name}`
    if (!walk.leaveOut.has(path)) await visit(walk, { path, child }, rules)
    if (!walk.tree.isWhole) return
  }
}

async function visit(
  walk: Walk,
  { path, child }: { path: string; child: Dirent },
  rules: Rules,
): Promise<void> {
  if (child.isDirectory()) {
    const { isPacked, inside } = ruleOn(`${path}/`, rules)
    if (isPacked) await visitFolder(walk, `${path}/`, inside)
  } else if (child.isSymbolicLink()) {
    // Git treats a link as a file even when it leads to a folder; people who write `data/` mean both.
    if (ruleOn(path, rules).isPacked && ruleOn(`${path}/`, rules).isPacked) await addLink(walk, path)
  } else if (child.isFile() && ruleOn(path, rules).isPacked) {
    const { size, mode } = await lstat(join(walk.root, path))
    const isExecutable = (mode & 0o100) !== 0
    walk.tree.entries.push({
      kind: 'file',
      path,
      sizeBytes: size,
      isExecutable,
      isAskedFor: isAskedFor(path, rules),
    })
    walk.tree.isWhole = ++walk.files <= walk.filesMax
  }
}

/** Links are stored as relative ones, so that they lead to the same file wherever the tree is unpacked. */
async function addLink({ tree, root }: Walk, path: string): Promise<void> {
  const written = await readlink(join(root, path))
  const place = dirname(path)
  const led = relative(root, await withoutLinks(resolve(root, place, written)))
  const isOutside = led === '..' || led.startsWith(`..${sep}`) || isAbsolute(led)
  if (isOutside) tree.outsideLinks.push({ path, target: written })
  else tree.entries.push({ kind: 'link', path, target: relative(place, led) || '.' })
}

/** Resolves the links in a path's folder, as far as it exists; the last name is kept even when it is a link. */
async function withoutLinks(path: string): Promise<string> {
  return realpath(dirname(path)).then(
    (folder) => join(folder, path.slice(dirname(path).length)),
    () => path,
  )
}

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

/** What of a folder is to be packed. */
export interface Tree {
  /** In the order of their paths. */
  entries: (FileEntry | Exclude<TarEntry, { kind: 'file' }>)[]
  /** Links that lead out of the folder, with where they lead. */
  outsideLinks: { path: string; target: string }[]
  /** False when there are so many files that the walk was given up. */
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
 * Looks at what is to be packed of a folder. Sockets, pipes and devices are left out.
 *
 * @param leaveOut paths that are left out whatever the ignore files say
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

/** `folder` ends in a slash, or is empty for the outermost. */
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
    // Git takes a link for a file even where it leads to a folder; people who write `data/` mean both.
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

/** Links are kept as relative ones, so that they lead to the same file wherever the tree is unpacked. */
async function addLink({ tree, root }: Walk, path: string): Promise<void> {
  const written = await readlink(join(root, path))
  const place = dirname(path)
  const led = relative(root, await withoutLinks(resolve(root, place, written)))
  const isOutside = led === '..' || led.startsWith(`..${sep}`) || isAbsolute(led)
  if (isOutside) tree.outsideLinks.push({ path, target: written })
  else tree.entries.push({ kind: 'link', path, target: relative(place, led) || '.' })
}

/** A path whose folder is the real one, as far as it exists; a name at its end is kept even when it is a link. */
async function withoutLinks(path: string): Promise<string> {
  return realpath(dirname(path)).then(
    (folder) => join(folder, path.slice(dirname(path).length)),
    () => path,
  )
}

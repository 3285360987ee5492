/** The Python packages that a job's `setup` installs, for providers that build them into an image. */
import { readFile } from 'node:fs/promises'
import { join, normalize } from 'node:path'

const INSTALLS =
  /(?:^|[\s;&])pip3?\s+install\s+(?:-q\s+|--quiet\s+)?(?:-r\s+|--requirement[\s=])([\w./-]+)\s*(?:$|[;&\n])/
/** A name with versions. Options, URLs, paths and markers can have another meaning on another machine. */
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9,._-]+\])?[A-Za-z0-9.,<>=!~* -]*$/
const LINE_CHARS_MAX = 200
const LINES_MAX = 500

/**
 * Reads the requirements file of a folder that `setup` installs with `pip install -r FILE`, without comments. Undefined if setup installs
 * none, if the file cannot be read, or if a line is not a plain name with versions: then only `setup` can install it.
 */
export async function readRequirements(
  directory: string,
  setup: string | undefined,
): Promise<string[] | undefined> {
  const [, path] = INSTALLS.exec(setup ?? '') ?? []
  if (path === undefined || normalize(path).startsWith('..') || path.startsWith('/')) return undefined
  const text = await readFile(join(directory, path), 'utf8').catch(() => '')
  const lines = text
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '')
  const isPlain = lines.every((line) => line.length <= LINE_CHARS_MAX && PLAIN.test(line))
  return lines.length > 0 && lines.length <= LINES_MAX && isPlain ? lines : undefined
}

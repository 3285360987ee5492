// Packs the runner into one file that Python can run directly. The same sources give the same bytes on every machine, because a running job
// identifies its runner by its digest.
//
//   node tools/runner-zip.mjs [OUT.pyz]
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { zipSync } from 'fflate'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const SOURCES = join(ROOT, 'runner')
const DEFAULT_OUT = join(ROOT, 'dist', 'runner', 'crucible-runner.pyz')

const SHEBANG = '#!/usr/bin/env python3\n'
// The earliest time in a zip, in local time like all times in zips: no time zone changes the bytes.
const MODIFIED = new Date(1980, 0, 1)
/** Created on Unix, as a plain file that every user may read. */
const MADE_ON_UNIX = 3
const MODE = 0o100644

/** The helpers for training programs, which the runner installs on the machine. */
const HELPERS = join(ROOT, 'bindings/python/crucible/src/crucible/checkpoint')
const HELPERS_IN_ZIP = 'helpers'
/** Jobs import this module of the package as `crucible_job`. */
const JOB_MODULE = '_crucible_job.py'

/** Programs that start runners and are not part of them. */
const STARTERS = ['bootstrap.py', 'launching.py']

function sources(folder = '') {
  return readdirSync(join(SOURCES, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) return sources(path)
    return entry.name.endsWith('.py') && !STARTERS.includes(path) ? [path] : []
  })
}

/** Returns the runner as one file, ready to be written as `*.pyz`. */
export function zipRunner() {
  const helpers = readdirSync(HELPERS).filter((name) => name.endsWith('.py'))
  const placeOf = (name) => (name === JOB_MODULE ? 'crucible_job.py' : `crucible/checkpoint/${name}`)
  const places = [
    ...sources().map((path) => [path, join(SOURCES, path)]),
    ...helpers.map((name) => [`${HELPERS_IN_ZIP}/${placeOf(name)}`, join(HELPERS, name)]),
  ]
  const files = {}
  for (const [path, source] of places.sort(([one], [other]) => (one < other ? -1 : 1)))
    files[path] = Buffer.from(readFileSync(source, 'utf8').replaceAll('\r\n', '\n'))
  const zip = zipSync(files, { level: 9, mtime: MODIFIED, os: MADE_ON_UNIX, attrs: MODE << 16 })
  return Buffer.concat([Buffer.from(SHEBANG), zip])
}

/** Writes it, executable, with missing folders. */
export function writeRunner(out) {
  mkdirSync(dirname(out), { recursive: true })
  writeFileSync(out, zipRunner(), { mode: 0o755 })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeRunner(process.argv[2] === undefined ? DEFAULT_OUT : resolve(process.argv[2]))
}

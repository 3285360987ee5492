// Suites of tests that read few files: npm test does not repeat one that has passed with the same files, programs and day.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { delimiter } from 'node:path'
import { hashOf } from './content.mjs'

/** Files that every test file reads: Jest's settings, and the environment of tests. */
const ALWAYS_READ =
  /^(?:test\/support\/|jest\.config\.js$|package(?:-lock)?\.json$|tools\/(?:suites\.mjs|only-in-all\.json)$)/

/** `tests` matches the test files of a suite, `reads` all files that they read; test/tools/suites.test.ts follows their imports. */
export const SUITES = [
  {
    name: 'tests of the small cloud',
    tests: /^packages\/small-cloud\/test\/.*\.test\.ts$/,
    reads: /^packages\/small-cloud\//,
  },
  {
    name: 'tests of the runner',
    tests:
      /^test\/(?:runner\/(?!bootstrap|s3-machine|s3-store)[\w-]+|checkpointing\/helpers|torn\/torn)\.test\.ts$/,
    reads:
      /^(?:runner|bindings\/python|examples|storage|core|intake|backends|packages\/small-cloud|test\/(?:runner|checkpointing|torn|kit|proof))\/|^tools\/runner-zip\.mjs$/,
  },
  {
    name: 'tests of the Python package crucible',
    tests: /^test\/bindings\/crucible\.test\.ts$/,
    reads:
      /^(?:bindings\/python|docs|test\/(?:runner\/python|bindings))\/|^(?:cli\/plain|client\/artifacts)\.ts$/,
  },
  {
    name: 'tests of the analysis of scripts',
    tests: /^test\/analyze\/.*\.test\.ts$/,
    reads: /^(?:packages\/analyzer|core|bindings\/python|test\/(?:analyze|kit))\//,
  },
  {
    name: 'tests of tools',
    tests: /^test\/tools\/(?:lint-prose|kept-promises|setup|test)\.test\.ts$/,
    reads: /^(?:tools|test\/tools|test\/cli\/dev\/temporal)\/|^\.ci\/|^\.textlintrc\.json$|^crucible$/,
  },
]

export const reads = (suite, file) => ALWAYS_READ.test(file) || suite.reads.test(file)

/**
 * Returns a value that changes with everything that decides whether a suite passes: the files that it reads, and the programs that it
 * finds. Programs change with their folders. The day is included, so that other changes are noticed soon.
 */
export function stateOf(suite, files) {
  const folders = process.env.PATH.split(delimiter).filter((folder) => existsSync(folder))
  const programs = folders.map((folder) => `${folder} ${statSync(folder).mtimeMs}`)
  const { stdout } = spawnSync('python3', ['-VV'], { encoding: 'utf8' })
  const settings = Object.entries(process.env).filter(([name]) => name.startsWith('CRUCIBLE_'))
  const day = new Date().toISOString().slice(0, 10)
  const content = hashOf(files.filter((file) => reads(suite, file)))
  return [content, process.version, stdout, day, ...settings.sort(), ...programs].join('\n')
}

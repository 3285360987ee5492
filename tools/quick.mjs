// Bundles the quick commands (cli/quick.ts) and their libraries into one file of dist/, with their licences next to it.
//
//   node tools/quick.mjs
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as esbuild from 'esbuild'
import { leanProto } from './lean-proto.mjs'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const CLI = join(ROOT, 'dist', 'cli')
const LINE_LIMIT = 120

const require = createRequire(import.meta.url)
const { QUICK_BUNDLE, QUICK_COMMANDS } = require('../dist/cli/quick.js')

/** Place in the bundle for the required definitions of Temporal's API, as a text. */
const PROTO = '__PROTO__'

/** The entry point: the program with the quick commands, and the schemas that check a running machine's documents. */
const ENTRY = `
  const { COMMANDS, HIDDEN_COMMANDS } = require('./program')
  const commands = { ${QUICK_COMMANDS.map((name) => `'${name}': () => require('./commands/job/${name}')`).join(', ')} }
  for (const entry of [...COMMANDS, ...HIDDEN_COMMANDS]) entry.load = commands[entry.name] ?? entry.load
  const parseBeat = (text) => require('../intake/documents').parseBeat(text)
  module.exports = { ...require('./start'), ...require('./run'), parseBeat }`

const leanApi = {
  name: 'lean API',
  setup({ onLoad }) {
    onLoad({ filter: /@temporalio[\\/]proto[\\/]protos[\\/]json-module\.js$/ }, () => ({
      contents: `
        const { Root, roots } = require('protobufjs/light')
        module.exports = (roots['__temporal'] ??= new Root()).addJSON(JSON.parse(${PROTO}).nested)`,
    }))
  },
}

/** Parts of the SDK's client that no quick command calls: a third of the remaining API is only for them. */
const LEFT_OUT =
  /@temporalio[\\/]client[\\/]lib[\\/](activity|async-completion|nexus|schedule|task-queue)-client\.js$/
const leanClient = {
  name: 'lean client',
  setup({ onLoad }) {
    const names = [
      'ActivityClient',
      'AsyncCompletionClient',
      'NexusClient',
      'ScheduleClient',
      'TaskQueueClient',
    ]
    onLoad({ filter: LEFT_OUT }, () => ({
      contents: `
        class LeftOut { options = {} }
        module.exports = { ${names.map((name) => `${name}: LeftOut`).join(', ')} }`,
    }))
  },
}

const { outputFiles, metafile } = await esbuild.build({
  stdin: { contents: ENTRY, resolveDir: CLI },
  absWorkingDir: ROOT,
  bundle: true,
  write: false,
  metafile: true,
  platform: 'node',
  target: 'node20',
  // Names are kept for stack traces.
  minifyWhitespace: true,
  lineLimit: LINE_LIMIT,
  legalComments: 'none',
  logLevel: 'warning',
  plugins: [leanApi, leanClient],
})

const inputs = Object.keys(metafile.inputs).filter((path) => existsSync(join(ROOT, path)))
const ourCode = inputs.filter((path) => path.startsWith('dist/'))
const stray = ourCode.find((path) =>
  /^dist\/(service|workers|activities|backends|planner|workflows)\//.test(path),
)
if (stray !== undefined) throw new Error(`${stray} is not part of quick commands: see cli/quick.ts`)
const missed = ourCode.find((path) => /\bclient\.(activity|nexus|schedule|taskQueue)\b/.test(textOf(path)))
if (missed !== undefined)
  throw new Error(`${missed} needs what is left out of the client: see tools/quick.mjs`)

writeFileSync(
  QUICK_BUNDLE,
  outputFiles[0].text.replace(PROTO, () => JSON.stringify(JSON.stringify(api()))),
)
writeFileSync(join(CLI, 'quick-commands.licenses.txt'), licences())

function textOf(path) {
  return readFileSync(join(ROOT, path), 'utf8')
}

function api() {
  // Excludes the definitions themselves, and the walk over payloads, which names messages without needing their definitions.
  const isUser = (path) => !/(json-module|payload-visitor\.generated)\.js$/.test(path) && !LEFT_OUT.test(path)
  const code = inputs.filter(isUser).map(textOf).join('\n')
  return leanProto(require('@temporalio/proto/protos/json-module').toJSON(), code)
}

/** Returns the licence of each package in the bundle. */
function licences() {
  const folders = inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [])
  return [...new Set(folders)]
    .sort()
    .map(licenceOf)
    .join(`\n${'-'.repeat(LINE_LIMIT)}\n\n`)
}

function licenceOf(folder) {
  const { name, version } = JSON.parse(textOf(`${folder}/package.json`))
  const files = readdirSync(join(ROOT, folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
  if (files.length === 0) throw new Error(`${folder} comes without a licence that could go with the bundle`)
  const texts = files.map((file) => textOf(`${folder}/${file}`).trim())
  return `${name} ${version}\n\n${texts.join('\n\n')}\n`
}

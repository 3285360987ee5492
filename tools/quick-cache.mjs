// Records V8's code cache of the quick commands while one of them runs: it lists the only job of a fake server.
//
//   node tools/quick-cache.mjs
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http2'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)
const { QUICK_CODE_CACHE, compileQuick, runQuick } = require('../dist/cli/quick.js')
const { SEARCH_ATTRIBUTES } = require('../dist/core/queues.js')
const { layout } = require('../dist/storage/layout.js')
const { ListWorkflowExecutionsResponse } = require('@temporalio/proto').temporal.api.workflowservice.v1

const keyword = (text) => ({
  metadata: { encoding: Buffer.from('json/plain'), type: Buffer.from('Keyword') },
  data: Buffer.from(JSON.stringify(text)),
})
const JOB = {
  execution: { workflowId: 'job/example' },
  type: { name: 'job' },
  status: 1,
  startTime: {},
  searchAttributes: { indexedFields: { [SEARCH_ATTRIBUTES.state]: keyword('running') } },
}
const JOBS = ListWorkflowExecutionsResponse.encode({ executions: [JOB] }).finish()

const SUBMITTED = {
  ...{ seq: 0, atMs: 0, kind: 'submitted', summary: '' },
  data: { jobId: 'example', spec: { name: 'example' }, owner: 'build', submittedAtMs: 0 },
}

/** Answers with jobs, or with an empty message. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
function answer(stream, { ':path': path }) {
  const message = path.endsWith('/ListWorkflowExecutions') ? JOBS : Buffer.alloc(0)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(Buffer.concat([head, message]))
}

// This server is reached without a proxy, whatever the environment says.
process.env.no_grpc_proxy = '127.0.0.1'

/** Parses an invalid beat, so that the schemas are built and cached. */
function refuseBeat(parseBeat) {
  try {
    parseBeat('{}')
  } catch (error) {
    if (error.errorCode === 'document') return
    throw error
  }
  throw new Error('The bundle takes {} for a beat')
}

const server = createServer().on('stream', answer).listen(0, '127.0.0.1')
await once(server, 'listening')
const home = mkdtempSync(join(tmpdir(), 'crucible-build-'))
try {
  // The job's submission: a server whose jobs are all missing from the store would count as another deployment's.
  const submission = join(home, 'store', layout.record('example', 0))
  mkdirSync(dirname(submission), { recursive: true })
  writeFileSync(submission, JSON.stringify(SUBMITTED))
  writeFileSync(join(home, 'store', layout.deployment()), JSON.stringify({ id: 'dep-0000000000' }))
  const script = compileQuick()
  const { runCli, parseBeat } = runQuick(script)
  refuseBeat(parseBeat)
  let output = ''
  const sink = { write: (text) => (output += text) }
  const exitCode = await runCli(['list'], {
    config: {
      environment: { CRUCIBLE_HOME: home, TEMPORAL_ADDRESS: `127.0.0.1:${server.address().port}` },
      isColourWanted: false,
      invocation: 'crucible',
    },
    stdout: sink,
    stderr: sink,
    signals: process,
    exit: process.exit,
    now: Date.now,
  })
  if (exitCode !== 0 || !output.includes('example'))
    throw new Error(`The bundle does not list jobs: ${output}`)
  writeFileSync(QUICK_CODE_CACHE, script.createCachedData())
} finally {
  server.close()
  rmSync(home, { recursive: true, force: true })
}

// Bundles the workflows into the file that workers load.
//
//   node tools/workflow-bundle.mjs FILE
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { buildWorkflowBundle } = require('../dist/workers/bundle.js')

await buildWorkflowBundle(process.argv[2])

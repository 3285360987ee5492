// Writes docs/job.schema.json and docs/retrain.schema.json, and the tables of fields in docs/reference/, from the schemas in intake/.
// `node tools/gen-job-schema.mjs`; tests fail when one of them is out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import prettier from 'prettier'
import './typescript.mjs'

const require = createRequire(import.meta.url)
const { jobFileJsonSchema } = require('../intake/job-schema.ts')
const { retrainFileJsonSchema } = require('../intake/retrain-schema.ts')
const { fieldTable } = require('../intake/field-table.ts')

async function write(schemaName, pageName, schema) {
  const schemaFile = new URL(`../docs/${schemaName}`, import.meta.url)
  const style = await prettier.resolveConfig(schemaFile)
  writeFileSync(schemaFile, await prettier.format(JSON.stringify(schema), { ...style, parser: 'json' }))
  const pageFile = new URL(`../docs/reference/${pageName}`, import.meta.url)
  const marked = /(<!-- fields -->\n)[\s\S]*(<!-- \/fields -->)/
  const page = readFileSync(pageFile, 'utf8')
  writeFileSync(
    pageFile,
    page.replace(marked, (_, begin, end) => `${begin}${fieldTable(schema)}\n${end}`),
  )
}

await write('job.schema.json', 'job-file.md', jobFileJsonSchema())
await write('retrain.schema.json', 'retraining-file.md', retrainFileJsonSchema())

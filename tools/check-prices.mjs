// Compares the price lists of the backends with a folder of third-party price lists, and lists every on-demand price that differs by more
// than 10 %, with the side that is older: `node tools/check-prices.mjs FOLDER`. The folder has aws-gpu-us-regions.csv (columns snapshot,
// instance_type, region, on_demand_usd_h) and other-providers.csv (provider, snapshot, instance_type, on_demand_usd_h). Exit code 1 if one of
// our prices is the older one.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { compare, parseCsv } from './price-check/compare.mjs'
import './typescript.mjs'

const require = createRequire(import.meta.url)
const { MODAL_GPUS } = require('../backends/modal/gpus.ts')
const { LAMBDA_READ_DAY, LAMBDA_TYPES } = require('../packages/small-cloud/src/lambda/types.ts')
const { MODAL_RATES, MODAL_RATES_DAY } = require('../packages/small-cloud/src/modal/rates.ts')
const catalog = require('../backends/ec2/market/catalog.json')
const { snapshots } = require('./price-check/snapshots.json')

/** Our prices: for EC2 the price list that it falls back to; for Lambda and Modal, which have only live prices, the last that were read. */
const OURS = {
  ec2: { day: catalog.observedAt.slice(0, 10), usdPerHour: catalog.usdPerHour['us-east-1'] },
  lambda: {
    day: LAMBDA_READ_DAY,
    usdPerHour: Object.fromEntries(LAMBDA_TYPES.map(({ name, centsPerHour }) => [name, centsPerHour / 100])),
  },
  modal: {
    day: MODAL_RATES_DAY,
    usdPerHour: Object.fromEntries(MODAL_GPUS.map(({ name, rate }) => [name, Number(MODAL_RATES[rate])])),
  },
}

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  console.error('Name the folder of the price lists to compare with: node tools/check-prices.mjs FOLDER')
  process.exit(2)
}
const read = (name) => {
  const path = join(folder, name)
  try {
    return parseCsv(readFileSync(path, 'utf8'))
  } catch (error) {
    console.error(`${path} cannot be read: ${error.message}.`)
    process.exit(2)
  }
}
// EC2's list is that of us-east-1.
const aws = read('aws-gpu-us-regions.csv')
  .filter(({ region }) => region === 'us-east-1')
  .map((row) => ({ ...row, provider: 'ec2' }))
const reference = [...aws, ...read('other-providers.csv')].map((row) => ({
  ...{ backend: row.provider, type: row.instance_type, snapshot: row.snapshot },
  usdPerHour: Number(row.on_demand_usd_h),
}))

const WORDS = {
  ours: 'ours is older',
  reference: 'the reference is older',
  unknown: 'unknown which is older',
}
const { compared, differences } = compare(OURS, reference, snapshots)
for (const { backend, type, snapshot, ours, reference: theirs, share, day, older } of differences) {
  const percent = `${share > 0 ? '+' : ''}${Math.round(share * 100)} %`
  console.log(
    `${backend} ${type}: $${ours} on ${day}, $${theirs} in ${snapshot} (${percent}): ${WORDS[older]}`,
  )
}
const old = differences.filter(({ older }) => older === 'ours').length
console.log(`${differences.length} of ${compared} prices differ by more than 10 %; ours is older in ${old}.`)
if (compared === 0) console.error('No price could be compared: the reference has no type that a backend has.')
process.exitCode = old > 0 || compared === 0 ? 1 : 0

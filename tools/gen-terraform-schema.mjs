// Writes tools/terraform-provider/schema.json: the arguments that Terraform's AWS provider accepts for the resources of the account set-up
// and for those of `truffle capacity --output terraform`, in the form of `terraform providers schema -json`. `npm pack @cdktf/provider-aws` contains them without the provider itself: the sources
// in its source maps have each argument's type and whether it is required or computed. `node tools/gen-terraform-schema.mjs
// PACKAGE_FOLDER`.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import prettier from 'prettier'
import { VERSION } from './terraform-provider.mjs'

const SOURCE = 'registry.terraform.io/hashicorp/aws'
const SIMPLE = { string: 'string', number: 'number', 'boolean | cdktf.IResolvable': 'bool' }
const GETTERS = { String: 'string', Number: 'number', Boolean: 'bool', List: ['list', 'string'] }
const ATTRIBUTE =
  /^ {2}\/\/ (\w+) - computed: (\w+), optional: (\w+), required: (\w+)\n([^]*?)(?=^ {2}\/\/ (?:\w+ - computed|=====)|^\})/gm

const [folder] = process.argv.slice(2)
const SETUP = new URL('../backends/ec2/setup/', import.meta.url)
const ours = readdirSync(SETUP)
  .filter((name) => name.startsWith('terraform'))
  .map((name) => readFileSync(new URL(name, SETUP), 'utf8'))
  .join('\n')
const capacity = readFileSync(new URL('../backends/ec2/capacity/terraform.ts', import.meta.url), 'utf8')
const labelled = (kind) =>
  [...capacity.matchAll(new RegExp(`kind: '${kind}',\\s+labels: \\['(aws_\\w+)'`, 'g'))].map(
    ([, type]) => type,
  )
const types = [...new Set([...ours.match(/(?<=resource\(\s*')aws_\w+/g), ...labelled('resource')])].sort()
const dataTypes = [...new Set(labelled('data'))].sort()

/** Returns the package's TypeScript source of a type, a class and an interface for the resource and each of its blocks. */
function sourceOf(name) {
  const text = readFileSync(join(folder, 'lib', name, 'index.js'), 'utf8')
  const map = /sourceMappingURL=data:application\/json;base64,(\S+)/.exec(text)[1]
  return JSON.parse(Buffer.from(map, 'base64').toString()).sourcesContent[0]
}

function attributesOf(source, className) {
  const start = source.indexOf(`export class ${className} extends`)
  const body = source.slice(start, source.indexOf('\n}\n', start) + 2)
  return [...body.matchAll(ATTRIBUTE)].map(([, name, computed, optional, required, code]) => ({
    name,
    code,
    flags: Object.fromEntries(
      Object.entries({ required, optional, computed }).flatMap(([flag, is]) =>
        is === 'true' ? [[flag, true]] : [],
      ),
    ),
  }))
}

/** Returns `undefined` for a type with fields of its own. */
function simpleType(code) {
  if (/= new cdktf\.StringMap\(/.test(code)) return ['map', 'string']
  const declared = /^ {2}private _\w+\?: ([^;]+);/.exec(code)?.[1]
  if (declared === undefined) return GETTERS[/^ {4}return .*\.get(\w+)Attribute\(/m.exec(code)?.[1]]
  if (declared.startsWith('{ [key: string]')) return ['map', SIMPLE[/\]: \(?(.*?)\)? \}$/.exec(declared)[1]]]
  if (!declared.endsWith('[]')) return SIMPLE[declared]
  return [code.includes('cdktf.Fn.tolist(') ? 'set' : 'list', SIMPLE[declared.slice(0, -2)]]
}

function blockOf(source, className, hasBlocks = true) {
  const block = { attributes: {}, block_types: {} }
  for (const { name, code, flags } of attributesOf(source, className)) {
    const type = simpleType(code)
    const [, fields, isSet] =
      /= new (\w+?)(?:OutputReference|List)\(this, "\w+"(?:, (true|false))?\)/.exec(code) ?? []
    // A provider's alias is a keyword of Terraform itself.
    if (name === 'alias') continue
    if (type !== undefined) block.attributes[name] = { type, ...flags }
    else if (fields !== undefined) nest(block, { source, name, fields, isSet, flags })
    else if (hasBlocks) throw new Error(`${className}.${name} is of a kind that is not known here:\n${code}`)
  }
  return block
}

/** A type with fields of its own is a block, or an attribute in the form of a block. */
function nest(block, { source, name, fields, isSet, flags }) {
  const inner = blockOf(source, `${fields}OutputReference`)
  const writer = fields[0].toLowerCase() + fields.slice(1)
  const written = new RegExp(
    `value: (?:cdktf\\.listMapperHcl\\()?${writer}ToHclTerraform(, true|, false)?.*\\n\\s+isBlock: true,\\n\\s+type: "(\\w+)"`,
  ).exec(source)
  const [, mapped, kind] = written ?? []
  if (written === null || mapped === ', false') {
    const object = Object.fromEntries(Object.entries(inner.attributes).map(([key, { type }]) => [key, type]))
    const collection = kind ?? (isSet === 'true' ? 'set' : 'list')
    block.attributes[name] = { type: [collection, ['object', object]], ...flags }
    return
  }
  block.block_types[name] = {
    nesting_mode: kind === 'struct' ? 'single' : kind,
    block: inner,
    ...(flags.required && kind !== 'struct' && { min_items: 1 }),
    ...(mapped === undefined && kind !== 'struct' && { max_items: 1 }),
  }
}

const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).cdktf.provider
if (version !== VERSION)
  throw new Error(`the package is of ${version}: tools/terraform-provider.mjs says ${VERSION}`)
const schemaOf = (type, { folder: prefix, base }) => {
  const source = sourceOf(`${prefix}${type.replace(prefix === '' ? 'aws_' : '', '').replaceAll('_', '-')}`)
  const [, className] = new RegExp(`export class (\\w+) extends cdktf\\.${base}`).exec(source)
  return [type, { version: 0, block: blockOf(source, className) }]
}
const resources = types.map((type) => schemaOf(type, { folder: '', base: 'TerraformResource' }))
const dataSources = dataTypes.map((type) => schemaOf(type, { folder: 'data-', base: 'TerraformDataSource' }))
// Only the simple arguments of the provider itself: the files set its Region, and their tests its credentials.
const provider = { version: 0, block: blockOf(sourceOf('provider'), 'AwsProvider', false) }
const schema = {
  format_version: '1.0',
  provider_schemas: {
    [SOURCE]: {
      provider,
      resource_schemas: Object.fromEntries(resources),
      data_source_schemas: Object.fromEntries(dataSources),
    },
  },
}
const path = fileURLToPath(new URL('./terraform-provider/schema.json', import.meta.url))
const options = await prettier.resolveConfig(path)
writeFileSync(path, await prettier.format(JSON.stringify(schema), { ...options, parser: 'json' }))
process.stderr.write(`${types.length} resources of ${SOURCE} ${version}: ${path}\n`)

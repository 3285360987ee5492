import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from '@jest/globals'
import { writeScript } from '../cli/dev/temporal/fake-cli'
import { testFolder } from '../support/folders'

const MODULE = join(__dirname, '../../tools/terraform-provider.mjs')
const PACKAGES = 'registry.terraform.io/hashicorp/aws/6.25.0'

let home: string
let bin: string
let cache: string

beforeEach(() => {
  home = testFolder('home')
  bin = testFolder('bin')
  cache = join(home, 'cache/terraform-provider')
  // Takes the provider from `registry` as long as that is there, by a link as Terraform does from mirrors.
  writeScript(
    join(bin, 'terraform'),
    `if [ "$1" = version ]; then echo a warning >&2; echo '{ "platform": "linux_amd64" }'; exit; fi
echo "$@" >>${home}/calls; cat main.tf >${home}/wanted
if [ ! -e ${home}/registry ]; then echo "Error: no such host"; echo more; exit 1; fi
mkdir -p "$TF_PLUGIN_CACHE_DIR/${PACKAGES}"; ln -s ${home}/registry "$TF_PLUGIN_CACHE_DIR/${PACKAGES}/linux_amd64"`,
  )
})

/** `builder` is the script of a build, with what is to be made in its variable `path`. */
function get(builder = 'throw new Error("no go")'): { folder: string; said: string[] } {
  const script = `import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
    import { dirname } from 'node:path'
    import { getTerraformProvider } from ${JSON.stringify(MODULE)}
    const build = async (folder, path) => { ${builder} }
    const say = (line) => console.error(line)
    console.log(String(await getTerraformProvider({ home: ${JSON.stringify(home)}, say, build })))`
  const asked = ['--input-type=module', '-e', script]
  const env = { PATH: `${bin}:/usr/bin:/bin` }
  const { stdout, stderr } = spawnSync(process.execPath, asked, { env, encoding: 'utf8' })
  return { folder: stdout.trim(), said: stderr.trimEnd().split('\n') }
}

describe("Terraform's provider for the tests", () => {
  it('is the real one, at its version, got once', () => {
    writeFileSync(join(home, 'registry'), '')
    const { folder } = get()
    expect(folder).toBe(join(cache, 'real-6.25.0'))
    expect(existsSync(join(folder, PACKAGES, 'linux_amd64'))).toBe(true)
    expect(readFileSync(join(home, 'wanted'), 'utf8')).toContain('version = "6.25.0"')
    expect(get()).toEqual({ folder, said: [''] })
    expect(readFileSync(join(home, 'calls'), 'utf8')).toMatch(/^init .*\n$/)
    expect(readdirSync(cache)).toEqual(['real-6.25.0'])
  })

  it('that its registry does not give is a stand-in, built from the sources here', () => {
    const build =
      'mkdirSync(dirname(path), { recursive: true }); writeFileSync(path, readdirSync(folder).join())'
    const { folder, said } = get(build)
    expect(folder).toMatch(/stand-in-[0-9a-f]{16}$/)
    const executable = join(folder, PACKAGES, 'linux_amd64/terraform-provider-aws_v6.25.0')
    expect(readFileSync(executable, 'utf8')).toBe('go.mod,go.sum,main.go,schema.json')
    expect(said[1]).toContain('cannot be had (Error: no such host), so a stand-in')
    expect(get()).toEqual({ folder, said: [''] })
  })

  it('that cannot be had in any way is done without, in words, and tried again the next time', () => {
    const { folder, said } = get()
    expect(folder).toBe('undefined')
    expect(said.at(-1)).toContain('the tests with it are skipped: no go')
    expect(readdirSync(cache)).toEqual([])
    writeFileSync(join(home, 'registry'), '')
    expect(get().folder).toBe(join(cache, 'real-6.25.0'))
  })

  it('that was a link to a mirror which is gone is got anew', () => {
    writeFileSync(join(home, 'registry'), '')
    const { folder } = get()
    rmSync(join(home, 'registry'))
    expect(get().folder).toBe('undefined')
    writeFileSync(join(home, 'registry'), '')
    expect(get().folder).toBe(folder)
  })

  it('is not asked for without terraform', () => {
    rmSync(join(bin, 'terraform'))
    const { folder, said } = get()
    expect(folder).toBe('undefined')
    expect(said).toEqual([expect.stringMatching(/^There is no terraform .* are skipped$/)])
  })
})

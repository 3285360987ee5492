import { describe, expect, it, jest } from '@jest/globals'
import { Output } from '../../../cli/kit/output'
import { Paper } from '../outside'

function made(
  options: { isJson?: boolean; isColourWanted?: boolean; columns?: number; simulated?: string[] } = {},
) {
  const [stdout, stderr] = [new Paper(), new Paper()]
  if (options.columns !== undefined) Object.assign(stdout, { isTTY: true, columns: options.columns })
  const { isJson = false, isColourWanted = true, simulated } = options
  return { stdout, stderr, out: new Output({ stdout, stderr, isJson, isColourWanted, simulated }) }
}

describe('the output', () => {
  it('is text or JSON, never both', () => {
    const text = made()
    text.out.json({ a: 1 })
    text.out.line('hello')
    text.out.table(['A'], [['1']])
    expect(text.stdout.text).toBe('hello\nA\n1\n')
    const json = made({ isJson: true })
    json.out.json({ a: 1 })
    json.out.line('hello')
    json.out.table(['A'], [['1']])
    json.out.note('beside')
    expect(JSON.parse(json.stdout.text)).toEqual({ schema: 'crucible/1', a: 1 })
    expect(json.stderr.text).toBe('beside\n')
  })

  it.each([
    ['a terminal', { columns: 80 }, true],
    ['a terminal with NO_COLOR', { columns: 80, isColourWanted: false }, false],
    ['a pipe', {}, false],
    ['JSON at a terminal', { columns: 80, isJson: true }, false],
  ])('of %s', (_what, options, isColoured) => {
    const { out } = made(options)
    expect(out.paint.red('x').includes('\u001b')).toBe(isColoured)
  })

  it.each([
    ["an ordinary user's", 1_000, 1],
    ["root's", 0, 0],
  ])('says what jobs of %s small cloud can read', (_, user, times) => {
    const getuid = jest.spyOn(process as { getuid: () => number }, 'getuid').mockReturnValue(user)
    const { out, stderr } = made({ simulated: ['ec2'] })
    out.noteSimulated()
    getuid.mockRestore()
    expect(stderr.text.match(/ can read your files and the deployment's key\./g) ?? []).toHaveLength(times)
  })

  it('takes a terminal of width 0 for one of 80 columns', () => {
    expect(made({ columns: 0 }).out.width).toBe(80)
    expect(made({}).out.width).toBe(100)
  })

  it('wraps sentences at words in a terminal, and keeps a command whole', () => {
    const text = '  owner  one two three four five; run `crucible show job-a` then six seven'
    const terminal = made({ columns: 30 })
    terminal.out.prose(text, 7)
    Object.assign(terminal.stderr, { isTTY: true, columns: 20 })
    terminal.out.note('a remark of several words')
    expect(terminal.stdout.text.split('\n')).toEqual([
      '  owner  one two three four',
      '         five; run',
      '         `crucible show job-a`',
      '         then six seven',
      '',
    ])
    expect(terminal.stderr.text).toBe('a remark of several\nwords\n')
    const pipe = made()
    pipe.out.prose(text, 7)
    expect(pipe.stdout.text).toBe(`${text}\n`)
  })

  it.each([
    ['moves the cursor', 'a\u001b[2Jb', 'a\u241b[2Jb'],
    ['sets the title', '\u001b]0;owned\u0007x', '\u241b]0;owned\u2407x'],
    ['sets the clipboard', '\u001b]52;c;cm0=\u0007', '\u241b]52;c;cm0=\u2407'],
    ['overwrites the line', 'failed\rsucceeded', 'failed\u240dsucceeded'],
    ['hides text', '\u001b[8mhidden', '\u241b[8mhidden'],
    ['hides text next to a colour', '\u001b[31;8mhidden', '\u241b[31;8mhidden'],
    ['begins a sequence with one character', 'a\u009b2Jb', 'a\ufffd2Jb'],
    ['turns the direction of text', 'gpj.\u202eexe', 'gpj.\ufffdexe'],
  ])('shows what %s and does not obey it', (_what, text, shown) => {
    const { out, stdout, stderr } = made()
    out.line(text)
    out.note(text)
    out.table(['A'], [[text]])
    expect(stdout.text).toBe(`${shown}\nA\n${shown}\n`)
    expect(stderr.text).toBe(`${shown}\n`)
    const json = made({ isJson: true })
    json.out.json({ text })
    // eslint-disable-next-line no-control-regex -- these are what must not be there
    expect(json.stdout.text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    expect(JSON.parse(json.stdout.text)).toEqual({ schema: 'crucible/1', text })
    const raw = made()
    raw.out.raw(text)
    expect(raw.stdout.text).toBe(`${text}\n`)
  })

  it('keeps colours of a terminal, and ends them with their line', () => {
    const { out, stdout } = made({ columns: 80 })
    out.line('\u001b[1;38;5;208mloss\u001b[0m 0.1')
    out.line('\u001b[31mred')
    out.line('\u001b[31mred\u001b[39m')
    expect(stdout.text.split('\n')).toEqual([
      '\u001b[1;38;5;208mloss\u001b[0m 0.1',
      '\u001b[31mred\u001b[0m',
      '\u001b[31mred\u001b[39m',
      '',
    ])
  })

  it.each([
    ['a pipe', {}],
    ['a terminal', { columns: 80 }],
    ['a terminal with NO_COLOR', { columns: 80, isColourWanted: false }],
  ])('has one line for each row and sentence of %s, whatever a name contains', (_what, options) => {
    const { out, stdout } = made(options)
    const name = 'job-a\n\u001b[31mjob-b\tfailed\u0085\u2028x\r'
    out.table(['A', 'B'], [[name, 'end']])
    out.line(`name ${name}`)
    out.prose(`name ${name}`)
    const lines = stdout.text.split('\n')
    expect(lines).toHaveLength(5)
    for (const line of lines.slice(1, 4)) expect(line).toContain('job-a␊')
    expect(lines[1]).toMatch(/job-b␉failed��x␍.* end$/)
    if ((options as { columns?: number }).columns === undefined) expect(stdout.text).not.toContain('\u001b')
  })

  it('leaves the colours of a log out in a pipe, and shows other sequences', () => {
    const text = '\u001b[1mloss\u001b[0m 0.1\u001b[2J\u001b[8mhidden'
    const [pipe, terminal] = [made(), made({ columns: 80 })]
    pipe.out.log(text)
    terminal.out.log(text)
    expect(pipe.stdout.text).toBe('loss 0.1␛[2J␛[8mhidden\n')
    expect(terminal.stdout.text).toBe('\u001b[1mloss\u001b[0m 0.1␛[2J␛[8mhidden\n')
  })

  it('has tables without lines and without blanks at the ends', () => {
    const { out, stdout } = made()
    out.table(
      ['NAME', 'COST'],
      [
        ['a', '$1.00'],
        ['longer', '$10.00'],
      ],
      { right: ['COST'] },
    )
    expect(stdout.text).toBe('NAME      COST\na        $1.00\nlonger  $10.00\n')
  })

  it('cuts only the flexible column, to the screen or to 100 columns', () => {
    const row = ['x'.repeat(30), 'why '.repeat(30), 'end']
    for (const [columns, width] of [
      [undefined, 100],
      [80, 80],
      [200, 160],
    ] as const) {
      const { out, stdout } = made(columns === undefined ? {} : { columns, isColourWanted: false })
      out.table(['A', 'WHY', 'B'], [row], { flexible: 'WHY' })
      const [, line = ''] = stdout.text.split('\n')
      expect(line.length).toBeLessThanOrEqual(width)
      expect(line.startsWith(row[0]!)).toBe(true)
      expect(line.endsWith('end')).toBe(true)
      expect(line.includes('…')).toBe(columns !== 200)
    }
  })

  it('measures what is seen, not the colours', () => {
    const { out, stdout } = made({ columns: 40 })
    out.table(['STATE', 'WHY'], [[out.paint.green('running'), 'x'.repeat(31)]], { flexible: 'WHY' })
    expect(stdout.text).toContain('x'.repeat(31))
  })
})

import { describe, expect, it } from '@jest/globals'
import { nameInMarkdown, plainInMarkdown } from '../../core/markdown'

describe('text from outside in markdown', () => {
  it.each([
    ['[click](https://evil.example)', '\\[click\\](https:\\/\\/evil.example)'],
    ['see https://evil.example or www.evil.example', 'see https:\\/\\/evil.example or www\\.evil.example'],
    ['![](//evil.example/pixel)', '!\\[\\](//evil.example/pixel)'],
    ['<img src=x>', '\\<img src=x\\>'],
    ['**bold** ~~gone~~ _it_', '\\*\\*bold\\*\\* \\~~gone\\~~ \\_it\\_'],
    ['$x$ | y', '\\$x\\$ \\| y'],
    ['a\n# heading\n\n- list', 'a # heading - list'],
    ['# heading', '\\# heading'],
    ['1. first', '1\\. first'],
    ['  12) twelfth', '  12\\) twelfth'],
    ['+', '\\+'],
    ['> quote', '\\> quote'],
    ['#5 is a number, and so is 2.5', '#5 is a number, and so is 2.5'],
    ['a - b', 'a - b'],
    ['a \r\n \n b', 'a b'],
    ['one ` tick', 'one \\` tick'],
    ['back\\slash', 'back\\\\slash'],
    ['a\u001b[2J\u202egpj.exe\u2028b', 'a␛\\[2J�gpj.exe�b'],
  ])('makes %j harmless', (text, expected) => {
    expect(plainInMarkdown(text)).toBe(expected)
  })

  it('keeps code and names as they are', () => {
    expect(plainInMarkdown('Run `crucible doctor [x]` in my_project-1.5')).toBe(
      'Run `crucible doctor [x]` in my_project-1.5',
    )
    expect(nameInMarkdown('a`b`\nc')).toBe('a\\`b\\` c')
    expect(nameInMarkdown('a \n\t b')).toBe('a b')
    expect(nameInMarkdown('a\u202eb')).toBe('a�b')
  })
})

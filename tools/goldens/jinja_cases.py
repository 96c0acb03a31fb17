"""The templates, conversations and snippets that jinja.py runs. Templates are the published ones of their model families, from
memory of their public form; what matters is that they use the language the way those files do."""

TEMPLATES = {}

TEMPLATES["smollm2"] = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

TEMPLATES["llama2"] = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

TEMPLATES["llama3.1"] = r"""{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- This block extracts the system message, so we can slot it into the right place. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{#- System message #}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\n" }}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\n" }}
{{- "Today Date: " + date_string + "\n\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "You have access to the following functions. To call a function, please respond with JSON for a function call." }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}

{#- Custom tools are passed in a user message with some extra guidance #}
{%- if tools_in_user_message and not tools is none %}
    {#- Extract the first user message so we can plug it in here #}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("Cannot put tools in the first user message when there's no first user message!") }}
{%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\n\n' -}}
    {{- "Given the following functions, please respond with a JSON for a function call " }}
    {{- "with its proper arguments that best answers the given prompt.\n\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""

TEMPLATES["qwen2.5"] = r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' }}
    {%- endif %}
    {{- "\n\n# Tools\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools>\n\nReturn a json object within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\n<tool_call>\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' }}
        {{- message.content }}
        {{- '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

TEMPLATES["qwen3"] = r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- "# Tools\n\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools><|im_end|>\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' }}
        {{- content }}
        {{- '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""

TEMPLATES["mistral-v3"] = r"""{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{#- This block checks for alternating user/assistant messages, skipping tool calling messages #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
            {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {%- if not message.tool_call_id is defined or message.tool_call_id|length != 9 %}
            {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
        {%- endif %}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
"""

TEMPLATES["gemma2"] = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %}"""

TEMPLATES["gemma3"] = r"""{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"""

TEMPLATES["phi3"] = """{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'user' %}{{'<|user|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>
' + message['content'] + '<|end|>
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>
' }}{% else %}{{ eos_token }}{% endif %}"""

TEMPLATES["zephyr"] = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

TEMPLATES["deepseek-r1"] = r"""{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\n\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{%- if message['content'] is none %}{{'<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name'] + '\n' + '```json' + '\n' + tool['function']['arguments']|tojson + '\n' + '```' + '<｜tool▁call▁end｜>'}}{%- else %}{{'<｜Assistant｜>' + message['content'] + '<｜tool▁calls▁begin｜>' + tool['function']['name'] + '<｜tool▁call▁end｜>'}}{%- endif %}{%- set ns.is_first = true -%}{%- else %}{{'\n' + '<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name'] + '<｜tool▁call▁end｜>'}}{%- endif %}{%- endfor %}{{'<｜tool▁calls▁end｜><｜end▁of▁sentence｜>'}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- if ns.is_tool %}{{'<｜tool▁outputs▁end｜>' + message['content'] + '<｜end▁of▁sentence｜>'}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>'}}{%- set ns.is_output_first = false %}{%- else %}{{'<｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>'}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<｜tool▁outputs▁end｜>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜><think>\n'}}{% endif %}"""

# Macros that call themselves over a JSON schema, as the GPT-OSS, Command-R and Gemma families print their tools.
TEMPLATES["schema-macros"] = r"""{%- macro type_of(spec, required=true, depth=0) -%}
    {%- if spec.type == "array" -%}
        {%- if spec['items'] -%}
            {%- if spec['items']['type'] == "string" -%}
                {{- "string[]" }}
            {%- else -%}
                {{- "(" ~ type_of(spec['items'], depth=depth + 1) ~ ")[]" }}
            {%- endif -%}
            {%- if spec.nullable %} | null{% endif -%}
        {%- else -%}
            {{- "any[]" }}
        {%- endif -%}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type[0] is defined -%}
        {{- spec.type | join(" | ") }}
    {%- elif spec.enum -%}
        {{- '"' + spec.enum | join('" | "') + '"' -}}
    {%- elif spec.type in ["number", "integer"] -%}
        number
    {%- elif spec.type == "object" and spec.properties -%}
        {{- "{\n" }}
        {%- for name, inner in spec.properties.items() -%}
            {{- "  " * (depth + 1) ~ name }}
            {%- if name not in (spec.required or []) -%}?{%- endif -%}
            : {{ type_of(inner, name in (spec.required or []), depth=depth + 1) }}
            {%- if inner.default is defined %} /* default: {{ inner.default | tojson }} */{% endif -%}
            {%- if not loop.last %},{% endif %}
            {{- "\n" }}
        {%- endfor -%}
        {{- "  " * depth ~ "}" }}
    {%- else -%}
        {{- spec.type | default("any", true) }}
    {%- endif -%}
{%- endmacro -%}
{%- macro turn(role, channel=none) -%}
    <|start|>{{ role }}{% if channel %}<|channel|>{{ channel }}{% endif %}<|message|>{{ caller() }}<|end|>
{%- endmacro -%}
{%- set knowledge = "2024-06" -%}
{%- call turn("system") -%}
Knowledge cutoff: {{ knowledge }}
Current date: {{ strftime_now("%Y-%m-%d") }}
{%- if tools %}

# Tools
namespace functions {
{% for tool in tools | map(attribute="function") | sort(attribute="name") %}
// {{ tool.description | replace("\n", " ") | truncate(60) }}
type {{ tool.name }} = (_: {{ type_of(tool.parameters) }}) => any;
{% endfor %}
}
{%- endif -%}
{%- endcall -%}
{%- set seen = namespace(roles=[], tools={}) -%}
{%- for message in messages -%}
    {%- set seen.roles = seen.roles + [message.role] -%}
    {%- if message.role == "tool" and not (messages | selectattr("tool_calls", "defined") | list) -%}
        {{- raise_exception("Message has tool role, but there was no previous assistant message with a tool call!") -}}
    {%- endif -%}
    {%- if message.tool_calls -%}
        {%- for call in message.tool_calls -%}
            {%- call turn("assistant to=functions." ~ call.function.name, "commentary") -%}
                {{- call.function.arguments | tojson(sort_keys=true, separators=(",", ":")) -}}
            {%- endcall -%}
        {%- endfor -%}
    {%- else -%}
        {%- call turn(message.role, "final" if message.role == "assistant") -%}
            {% generation %}{{ message.content if message.content is string else message.content | tojson }}{% endgeneration %}
        {%- endcall -%}
    {%- endif -%}
{%- else -%}
    (no messages)
{%- endfor -%}
[{{ seen.roles | unique | join(",") }}|{{ seen.roles | length }}|{{ loop is defined }}]
{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}"""

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather now", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "Où? <\"Zürich\">"},
                                         "unit": {"type": "string", "enum": ["C", "F"], "default": "C"}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {
        "type": "object", "properties": {"xs": {"type": "array", "items": {"type": "number"}}, "deep": {
            "type": "object", "properties": {"a": {"type": ["integer", "null"]}}, "required": ["a"]}}}, "return": {"type": "number"}}},
]


def said(*turns):
    return [{"role": role, "content": content} for role, content in turns]


CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "abcdef123", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "unit": "C", "n": 1.0}}}]}

CONVERSATIONS = {
    "user": {"messages": said(("user", "Hello!"))},
    "no prompt": {"messages": said(("user", "Hello!"), ("assistant", "Hi.")), "prompt": False},
    "system": {"messages": said(("system", " You are terse. \n"), ("user", "  Why?\n\n"))},
    "turns": {"messages": said(("system", "S"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d\n"), ("user", "e"))},
    "unicode": {"messages": said(("user", "Grüße 👋🏽 – 你好, עולם\u00a0"), ("assistant", "\u2028ñ\u3000"), ("user", "'quo\"ted' <b>&amp;</b> {{ x }} {% y %}"))},
    "empty content": {"messages": said(("system", ""), ("user", ""), ("assistant", ""), ("user", ""))},
    "no messages": {"messages": []},
    "two users": {"messages": said(("user", "a"), ("user", "b"))},
    "assistant first": {"messages": said(("assistant", "a"), ("user", "b"))},
    "unknown role": {"messages": said(("user", "a"), ("critic", "b"))},
    "none content": {"messages": said(("user", "a"), ("assistant", None))},
    "tools": {"messages": said(("system", "S"), ("user", "Weather?")), "tools": True},
    "tool call": {"messages": [*said(("user", "Weather?")), CALL, {"role": "tool", "tool_call_id": "abcdef123", "name": "get_weather", "content": "{\"t\": 21}"}], "tools": True},
    "tool answered": {"messages": [*said(("user", "Weather?")), CALL, {"role": "tool", "tool_call_id": "abcdef123", "content": "21"}, *said(("assistant", "21 °C"), ("user", "ok"))]},
    "thinking": {"messages": said(("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c")), "variables": {"enable_thinking": False}},
    "parts": {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " What? "}]}]},
}

# Variables that snippets and expressions see.
GLOBALS = {
    "s": "Hello, World", "empty": "", "uni": "Straße – ДОМ 你好 👋🏽", "padded": "  \t x y \n", "n": 7, "neg": -7, "f": 2.5, "yes": True, "no": False, "nil": None,
    "xs": [3, 1, 2], "words": ["b", "A", "c", "a"], "mixed": [1, "a", None, True, 2.0, [1], {"k": "v"}],
    "d": {"b": 1, "a": 2, "items": "shadow", "C": 3}, "nested": {"l": [{"x": [10, 20]}]},
    "people": [{"name": "Ann", "age": 30, "ok": True}, {"name": "bob", "age": 25}, {"name": "Cid", "age": 30, "ok": False}],
    "html": "<a href=\"x\">'&'</a>", "lines": "one\n\ntwo\r\nthree\n",
}

EXPRESSIONS = r"""
1 + 2 * 3 - 4 // 3
7 // 2, -7 // 2, 7 // -2, 7 % 3, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2
2 ** 10, 2 ** -1, -2 ** 2, 2 ** 3 ** 2
7 / 2, 6 / 2, 1 / 3, 1e16, 1e15, 1.5e-5, 0.0001, 123456789.123456789, 1e100, -0.0
1_000 + 0x1F + 0b101 + 0o17
1 / 0
1 % 0
0.1 + 0.2
'a' + 1
'a' * 3 ~ '-' * 0 ~ 2 * 'b'
[1] * 2 + [3]
(1,) + (2, 3)
[1] + (2,)
'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x'] ~ undefined_thing
1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2 != 1
1 == 1.0, 1 == true, 'a' == 'a', [1, 2] == [1, 2], {'a': 1} == {'a': 1.0}, (1,) == [1]
'a' < 'b', [1, 2] < [1, 3], 'ä' > 'z'
1 < 'a'
none < 1
'ell' in s, 'x' not in s, 1 in xs, 9 in xs, 'a' in d, 'zz' in d, 2 in {2: 3}
1 in s
1 in 5
not true or false and true, not (true and false)
'' or 'x', 'a' and 'b', 0 or none, [] or {} or 'last'
'yes' if yes else 'no', 'never' if no
'a' if no else 'b' if yes else 'c'
undefined_thing
undefined_thing.attr
undefined_thing['x']
undefined_thing + 1
undefined_thing == undefined_other, undefined_thing == '', undefined_thing is defined
undefined_thing()
d.missing
d.missing.more
nested.l[0].x[1], nested['l'][0]['x'][-1], nested.l.0.x.1
xs[5]
xs['a']
xs[-1], xs[0], s[0], s[-1], uni[0], uni[-3]
s[1:4], s[-5:], s[:-7], s[::2], s[::-1], xs[1:], xs[::-1], xs[5:], uni[8:12], uni[::-1]
xs[::0]
(1, 2, 3)[1:], (1, 2, 3)[::-1]
xs['a':]
s[undefined_thing:]
d[1:]
nil[1:]
undefined_thing[1:]
s[nil:3], xs[:nil]
'{:.3}|{:.2}|{:.4}|{:.4}|{:.1}|{:.0}|{:.3}|{:10.3}|{:<8}|{:+}'.format(2.0, 20.0, 1234.0, 12.0, 0.5, 3.0, 0.00001, 1.0, 1.5, 2.0)
d['items'], d.b, d.items() | list
{'a': 1, 'b': [1, (2,), 'x'], 'c': none, 3: {'d': ()}}
[1, 2.0, 'a', "it's", 'q"q', 'both\'"', true, none, 'tab\t', 'nl\n', '\\', 'é', '\x00', '\u2028']
('a',), (), ('a', 'b')
{'a': 1}.a, {'a': 1}['a'], {1: 'x'}[1], {'a': 1, 'a': 2}
{[1]: 2}
range(5) | list, range(2, 8, 3) | list, range(5, 0, -2) | list, range(3), range(0, 10, 3), range(0)
range(100001) | length
range(1, 2, 0)
range(5)[2], range(5)[-1], range(5) | length, 3 in range(5)
dict(a=1, b=2), dict({'x': 1}, y=2), dict([('k', 'v')])
s | upper, s | lower, s | title, 'hELLO wORLD-foo bar' | title, 'hELLO' | capitalize, uni | upper, uni | lower
s.upper(), s.lower(), s.title(), "they're bill's".title(), "they're bill's" | title, s.swapcase(), 'ß'.upper(), 'éa'.capitalize()
padded | trim ~ '|', padded.strip() ~ '|', padded.lstrip() ~ '|', padded.rstrip() ~ '|', 'xxaxx'.strip('x'), 'xxaxx' | trim('x'), '\u3000a\xa0'.strip()
'a,b,,c'.split(','), 'a b  c '.split(), 'a,b,c'.split(',', 1), 'a b c'.rsplit(' ', 1), ''.split(), ''.split(','), ' a  b '.split(none, 1), 'a b  c'.rsplit(none, 1)
'a'.split('')
lines.splitlines(), 'a\nb'.splitlines(true), 'a\u2028b\x0bc'.splitlines()
', '.join(['a', 'b']), ''.join('abc'), '-'.join(d)
','.join([1])
s.startswith('He'), s.endswith(('x', 'ld')), s.startswith('ell', 1), s.endswith('Hell', 0, 4)
s.find('o'), s.rfind('o'), s.find('zz'), s.index('l'), uni.find('Д'), s.find('o', 5), s.count('l'), 'aaa'.count('aa'), 'abc'.count('')
s.index('zz')
s.replace('l', 'L'), s.replace('l', 'L', 1), 'aaa' | replace('a', 'b', 2), 'ab'.replace('', '-'), 12321 | replace(2, 'x')
'a-b-c'.partition('-'), 'a-b-c'.rpartition('-'), 'abc'.partition('-'), 'abc'.rpartition('-')
'abc'.removeprefix('a'), 'abc'.removesuffix('c'), 'abc'.removeprefix('x'), '7'.zfill(3), '-7'.zfill(4), 'a'.ljust(3, '.') ~ 'a'.rjust(3) ~ 'ab'.center(5, '*') ~ 'abc'.center(6, '*')
'abc'.isalpha(), '12'.isdigit(), 'a1'.isalnum(), ' '.isspace(), ''.isalpha(), 'AB'.isupper(), 'Ab'.islower(), 'ab1'.islower(), '1'.isupper()
'a\tb'.expandtabs(4), 'Äß'.casefold() | length
'{} {} {0}'.format(1, 2)
'{} {}'.format('a', 2), '{1}{0}'.format('a', 'b'), '{x:>5}|{y:<5}|{z:^5}'.format(x='a', y='b', z='c'), '{:.2f} {:05d} {:,} {:x} {:%}'.format(3.14159, 42, 1234567, 255, 0.25), '{{}}'.format()
'{0[0]} {1.name}'.format(xs, people[0]), '{!r} {!s}'.format('a', 'b'), '{:+d} {:e} {:g} {:08.3f} {:#x}'.format(5, 12345.678, 0.0001, -3.14159, 255)
'%s is %d and %.2f, %5d|%-5d|%05d %x %%' % ('x', 3, 2.5, 42, 42, 42, 255), '%s' % 'one', '%(a)s-%(b)d' % {'a': 'x', 'b': 2}, '%r' % 'q', '%s' % [1]
'%s %s' % 'one'
'%d' % 'x'
'%s' % (1, 2)
'%s and %s' | format('a', 1), '%(k)s' | format(k='v')
s.append('x')
xs.append(4)
d.update({'x': 1})
d.get('a'), d.get('zz'), d.get('zz', 5), d.keys() | list, d.values() | list, d.items() | list
d.keys(), d.values(), {}.items()
xs.index(1), xs.count(3), (1, 1).count(1)
xs | length, s | count, d | length, uni | length, undefined_thing | length, '' | length
5 | length
xs | first, xs | last, [] | first, s | first, '' | last, d | first
xs | sum, [] | sum, [0.5, 1] | sum, people | sum(attribute='age'), [[1], [2]] | sum(start=[])
xs | min, xs | max, words | min, words | max(case_sensitive=true), [] | min, people | max(attribute='age')
xs | sort, words | sort, words | sort(true), words | sort(case_sensitive=true), people | sort(attribute='age') | map(attribute='name') | list, people | sort(attribute='age,name', reverse=true) | map(attribute='name') | list
mixed | sort
words | unique | list, [1, 1.0, true, 2] | unique | list, words | unique(true) | list
xs | reverse | list, s | reverse, d | reverse | list
words | join, words | join(', '), xs | join('-'), people | join('/', attribute='name'), 'abc' | join('.')
words | map('upper') | list, people | map(attribute='age') | list, people | map(attribute='ok', default='?') | list, [' a ', 'b '] | map('trim') | join(','), words | map('replace', 'a', 'z') | list
words | map('nosuch') | list
xs | map | list
xs | select('odd') | list, xs | reject('odd') | list, [0, 1, '', 'a', none] | select | list, xs | select('>', 1) | list, xs | select('in', [1, 3]) | list, [1, 2, 4] | select('divisibleby', 2) | list
people | selectattr('ok') | map(attribute='name') | list, people | selectattr('ok', 'defined') | list | length, people | rejectattr('ok') | map(attribute='name') | list, people | selectattr('age', 'equalto', 30) | map(attribute='name') | list, people | rejectattr('age', 'lt', 30) | list | length
people | selectattr('age', 'nosuch') | list
d | dictsort, d | dictsort(true), d | dictsort(by='key', reverse=true), {'a': 2, 'b': 1} | dictsort(false, 'value')
d | items | list, undefined_thing | items | list
xs | items | list
people | groupby('age') | list, people | groupby('name') | map('first') | list
xs | batch(2) | list, xs | batch(2, 'f') | list, xs | slice(2) | list, xs | slice(2, 0) | list
undefined_thing | default('x'), none | default('x'), '' | d('x', true), 0 | default(5, boolean=true), d.zz | default
1.5 | int, '42' | int, ' 42 ' | int, '4_2' | int, '3.9' | int, 'x' | int, 'x' | int(5), '0x1f' | int(0, 16), 'ff' | int(base=16), true | int, none | int, '1e3' | int
'1.5' | float, 'x' | float, 'x' | float(2.0), 3 | float, '1e3' | float, 'inf' | float, true | float
undefined_thing | int
2.5 | round, 3.5 | round, 2.675 | round(2), 42 | round, 42.55 | round(1, 'floor'), 2.1 | round(0, 'ceil'), -2.5 | round, 1234.5 | round(-2), 0.5 | round | int
2.5 | round(1, 'bad')
-3 | abs, -2.5 | abs, true | abs, neg | abs
'x' | abs
html | escape, html | e | e, html | safe, html | forceescape, ('<' | safe) + '<', ('<' | e) ~ '<', 5 | e
'a\nb\n\nc' | indent, 'a\nb' | indent(2, true), 'a\n\nb' | indent(2, blank=true), 'a\nb' | indent('> ')
'foo bar baz qux' | truncate(9), 'foo bar baz qux' | truncate(9, true), 'foo bar baz qux' | truncate(11, false, '...', 0), 'short' | truncate(10)
'one two  three' | wordcount, 'a' | center(5) ~ '|', 'a b&c/d' | urlencode, {'a': 1, 'b c': 'd&'} | urlencode
5 | string ~ 1, none | string, [1] | string | length, 'abc' | list, d | list
mixed | tojson
{'a': 1.0, 'b': [1, 'é\n"\\\x01/'], 'c': none, 'd': true, 1: 2, 2.5: [], none: {}} | tojson
{'b': 1, 'a': [1, 2, {}], 'e': []} | tojson(indent=2)
{'b': 1, 'a': [1]} | tojson(sort_keys=true, separators=(',', ':')), 'é👋' | tojson(ensure_ascii=true), [1] | tojson(indent=0)
(1, 2) | tojson, 1e100 | tojson, 1e-7 | tojson, '' | tojson
undefined_thing | tojson
range(3) | tojson
{(1, 2): 3} | tojson
1 is number, 1.5 is number, true is number, '1' is number, 1 is integer, true is integer, 1.0 is float, true is boolean, 1 is boolean
s is string, xs is string, d is mapping, xs is mapping, xs is iterable, s is iterable, 5 is iterable, d is iterable, none is iterable
xs is sequence, s is sequence, d is sequence, 5 is sequence, (1,) is sequence, range(2) is sequence, d.items() is sequence, (xs | map('abs')) is sequence, undefined_thing is sequence
nil is none, none is none, 0 is none, s is defined, zz is defined, zz is undefined, nil is defined, d.a is defined, d.zz is defined, nil is not none
true is true, 1 is true, false is false, 0 is false, yes is true
4 is even, 3 is odd, 9 is divisibleby 3, 9 is divisibleby(2), 1 is eq 1, 1 is ne(2), 2 is gt 1, 1 is lessthan 2, 1 is equalto 1.0, 2 is ge 2, 2 is le 1
1 is in [1, 2], 'a' is in 'abc', 1 is not in xs
'abc' is lower, 'ABC' is upper, 'aB' is lower, range is callable, s is callable, 'upper' is filter, 'nosuch' is filter, 'odd' is test, nil is sameas none, 1 is sameas true, xs is sameas xs
1 is nosuch
s | nosuch
s is string and not s is none or false
not nil is none
1 if nil is none else 2
-xs | first
-n, +n, -f, - -n, -true
-s
'a' 'b' "c", 'it''s'
'\x41\u00e9\U0001F44B\101\n|\t|\q|\''
s.nosuch
s.nosuch()
5()
xs | join(d=',')
xs | join(sep=',')
s | upper(1)
namespace(a=1).a, namespace(a=1).zz is defined
loop is defined, caller is defined
(xs | map('string')) is defined, (xs | select('gt', 99)) | list | length, 'truthy' if xs | select('gt', 99) else 'falsy'
cycler('a', 'b').next(), joiner('|')() ~ 'x'
strftime_now('%Y-%m-%d %H:%M:%S %j %B'), strftime_now('') ~ 'x', strftime_now('%d %b %Y')
raise_exception('My own sentence: no!')
xs[0], xs[1], 'trailing comma',
[1, 2,], {'a': 1,}, (1, 2,)
1if yes else 2
{'a': {'b': {'c': [1, {'d': 2}]}}}.a.b.c[1].d
xs | sort | reverse | list | first | string | length
mixed | map('string') | join('|')
mixed | string
people[0]
people | map(attribute='name') | map('lower') | sort | join(' ')
(1, 'a') in [(1, 'a')], [1] in [[1]], none in [none], 'a' in ('a', 'b')
'%s' % none, '%s' % (none,), '%5.1f|' % 3.14159, '%+d' % 5, '%c' % 'x', '%c' % 65, '%e' % 12345.678, '%g' % 0.00001, '%o' % 8, '%X' % 255, '%#x' % 255, '%*d' % (5, 42)
9223372036854775807, -9223372036854775807 - 1
1 ** 0.5, 4 ** 0.5, 0 ** 0, 2.0 ** 3
d | length if d is mapping and d else 'none'
a.b if a is defined else 'undefined'
's' | attr('nosuch')
s | attr('upper') is callable, d | attr('b') is defined
'' is string, '' is none, not '', not [], not {}, not 0.0, not (0,)
""".strip("\n").split("\n")

SNIPPETS = [
    # Whitespace control: trim_blocks and lstrip_blocks are on.
    "a\n  {% if yes %}\nb\n  {% endif %}\nc\n", "a\n  {%+ if yes %}\nb\n  {%+ endif +%}\nc\n", "a \n {%- if yes -%} \n b \n {%- endif -%} \n c",
    "a {% if yes %} b {% endif %} c", "  {{ s }}  \n  {{- n -}}  \n  {{ n }}\n\n", "x {#- c -#} y {# d #}\n z {#+ e +#}\n w", "  {# lead #}\n  b", "{#- a #} {% if yes %}{# b #}\n{% endif %}\n.",
    "{% if yes %}\n\n{% endif %}\n\n", "\n{{ n }}\n", "{{ n }}\n\n", "a\r\n{{ n }}\r\n{% if yes %}\r\nb\r{% endif %}\r\nc\r\n", "\t{% set x = 1 %}\t{{ x }}\t{% set y = 2 %}\n{{ y }}",
    "{% raw %}{{ not }} {% parsed %} {# at all #}{% endraw %}", "a\n  {% raw %}\n  {{ x }}\n  {% endraw %}\nb", "a {%- raw -%} b {%- endraw -%} c", "{% raw %}x", "{%raw%}{%endraw%}|{%-  raw  -%}  y  {%-  endraw  %}\nz",
    "  {% if yes %}  {% if yes %}\n  x\n  {% endif %}  {% endif %}\n", "{{ '{{' }} {{ '%}' }} {{ \"}}\" }} {{ {'a': {'b': 1}} }}", "{{- 5 -}}{{+ 5 }}", "{% if yes -%}\n  \u3000a\n{%- endif %}", "a{{ n }}\n{{ n }}b\n\n\n",
    "{%- for x in xs -%}\n  {{ x }}\n{%- endfor -%}", "{% for x in xs %}\n  {{ x }}\n{% endfor %}", "   {%- set a = 1 +%}   \n{{ a }}", "{{ 1 }}{% if no %}\n{% endif %}\n{{ 2 }}", "{", "{ {", "{{ '}' }}}", "}}", "%}", "{%%}", "{{}}", "{# a", "{{", "{%", "a {{ b", "{% if", "#} {# #}",
    "{{ 'a\\\nb' }}",
    # If, set, scopes.
    "{% if no %}a{% elif yes %}b{% else %}c{% endif %}", "{% if no %}a{% elif no %}b{% else %}c{% endif %}", "{% if zz %}a{% endif %}b", "{% if xs: %}a{% endif %}", "{% if 1, %}t{% endif %}",
    "{% set a = 1 %}{% set b, c = 2, 3 %}{{ a }}{{ b }}{{ c }}", "{% set a, b = [1] %}", "{% set a, b = [1, 2, 3] %}", "{% set (a, b), c = (1, 2), 3 %}{{ a + b + c }}", "{% set x = 1, 2 %}{{ x }}",
    "{% set x = 1 %}{% for i in xs %}{{ x }}{% set x = i %}{% endfor %}{{ x }}", "{% if yes %}{% set x = 1 %}{% endif %}{{ x }}", "{% for i in xs %}{% if loop.first %}{% set x = i %}{% endif %}{{ x }}.{% endfor %}",
    "{% set ns = namespace(x=0, l=[]) %}{% for i in xs %}{% set ns.x = ns.x + i %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.x }} {{ ns.l }} {{ ns }}", "{% set d.x = 1 %}", "{% set zz.x = 1 %}", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}{{ ns.c }}",
    "{% set x %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | upper | trim %} a{{ n }}b {% endset %}[{{ x }}]", "{% set x | replace('a', 'b') %}aaa{% endset %}{{ x }}", "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}",
    "{% with a = 1, b = n %}{{ a + b }}{% endwith %}{{ a }}", "{% set a = 5 %}{% with a = 1, b = a %}{{ b }}{% endwith %}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% filter upper | replace('A', 'x') %}a{{ s }}{% endfilter %}", "{% set none = 1 %}", "{% set true = 1 %}", "{% set 1 = 1 %}", "{% print n, s %}",
    # Loops.
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for x in [] %}a{% else %}empty{% endfor %}", "{% for x in zz %}a{% else %}undefined{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for c in 'añ👋' %}[{{ c }}]{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}", "{% for k, v in d | dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{% for a, b in xs %}{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}", "{% for x in xs if x > 9 %}a{% else %}none{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for x in xs %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ y }}{% endfor %}{% endfor %}", "{% for x in xs %}{{ loop.cycle('odd', 'even') }} {% endfor %}", "{% for x in [1, 1, 2, 2, 1] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}",
    "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{% break %}{% else %}e{% endfor %}", "{% for x in xs %}{% continue %}{% else %}e{% endfor %}", "{% for x in xs %}{% for y in xs %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %}|{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in xs if not ns.stop %}{{ x }}{% if x == 1 %}{% set ns.stop = true %}{% endif %}{% endfor %}", "{% for n in [{'v': 1, 'c': [{'v': 2, 'c': [{'v': 3}]}]}, {'v': 4}] recursive %}{{ n.v }}@{{ loop.depth }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}", "{% for x in xs %}{{ loop(xs) }}{% endfor %}",
    "{% for x in xs %}{% endfor %}{{ x }}{{ loop }}", "{% for x in xs | map('string') %}{{ x }}{{ loop.last }}{% endfor %}", "{% set g = xs | select('odd') %}{{ g | list }}{{ g | list }}", "{% for loop in xs %}{% endfor %}", "{% for x, y in [(1, 2)] if x < y %}{{ x }}{{ y }}{% endfor %}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for x in xs if yes else [] %}{{ x }}{% endfor %}", "{% for x in (xs if yes else []) %}{{ x }}{% endfor %}",
    "{% for m in people %}{{ loop.previtem.name if loop.previtem is defined else '-' }}<{{ m.name }}>{{ loop.nextitem.name if not loop.last }};{% endfor %}", "{% break %}", "{% for x in xs %}{% if loop.index is divisibleby 2 %}{{ x }}{% endif %}{% endfor %}", "{% for x in xs %}{{ loop.length - loop.index }}{% if not loop.last %},{% endif %}{% endfor %}",
    # Macros and calls.
    "{% macro m(a, b=2, c='x') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='z') }}{{ m(b=5, a=4) }}{{ m() }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(z=1) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% macro f() %}{{ late }}{% endmacro %}{% set late = 'bound' %}{{ f() }}", "{% macro f() %}{% set inner = 1 %}{{ inner }}{% endmacro %}{{ f() }}{{ inner }}", "{{ early() }}{% macro early() %}x{% endmacro %}", "{% macro f(x) %}{{ x }}{% endmacro %}{{ f.name }} {{ f }} {{ f('<') | length }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% macro box(t) %}<{{ t }}:{{ caller() }}>{% endmacro %}{% call box('a') %}body{{ n }}{% endcall %}", "{% macro each(l) %}{% for x in l %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(v, i) each(xs) %}{{ i }}:{{ v }} {% endcall %}", "{% macro m() %}{{ caller is defined }}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% call s %}{% endcall %}", "{% for i in xs %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}", "{% macro m(x) %}{{ x | default('dflt') }}{% endmacro %}{{ m() }}", "{% macro m(a) -%}  {{ a }}  {%- endmacro %}|{{ m(1) }}|",
    "{% macro outer() %}{% macro inner() %}I{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}", "{% generation %}{% set z = 1 %}{{ z }}{% endgeneration %}{{ z }}", "{% for x in xs %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}", "{% macro m(a, a) %}{{ a }}{% endmacro %}",
    # Errors.
    "{% endif %}", "{% if yes %}", "{% if yes %}{% endfor %}", "{% for x in xs %}{% endif %}", "{% nosuch %}", "{{ 1 + }}", "{{ (1 }}", "{{ [1, 2 }}", "{{ 'abc }}", "{{ a b }}", "{{ 1 2 }}", "{{ a.1b }}", "{{ a..b }}", "{{ | upper }}", "{{ a | }}", "{{ a is }}", "{{ x[] }}", "{{ f(a=1, 2) }}", "{{ f(a=1, a=2) }}", "{{ 012 }}", "{{ ! }}", "{{ a ? b : c }}", "{{ $ }}",
    "{% set %}", "{% set x %}", "{% for %}{% endfor %}", "{% for x %}{% endfor %}", "{% for x in %}{% endfor %}", "{% macro %}{% endmacro %}", "{% include 'x' %}", "{% if no %}{{ s | nosuch }}{% endif %}ok", "{{ s | nosuch if no else 'ok' }}", "{% for x in [] %}{{ x | nosuch }}{% endfor %}", "{{ x is string is none }}", "{{ 1 == 1 == true }}", "{{ not }}", "{% else %}", "{{ 99999999999 * 1 }}",
]
